/* Functions that kernels call, one to a paragraph: a source takes those that it needs. They yield
 * what the interpreter yields; those of f32 that are no single operation have the expansions, and so
 * the errors, of the LLVM back end (compilers/tvm/transcendental.py, fast.py, powers.py). All of them
 * are free of branches, so that loops around them are vectorised. */

/* Of an array, a pointer that is not known to lead there: then GCC keeps apart what is in other
 * arrays, and those in registers. */
INLINE void *hidden(void *array) {
  __asm__("" : "+r"(array));
  return __builtin_assume_aligned(array, 64);
}

INLINE uint32_t bits_of_f32(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

INLINE float f32_of_bits(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

INLINE int64_t bits_of_f64(double x) {
  int64_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

INLINE double f64_of_bits(int64_t bits) {
  double x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

/* Halves are kept as their bits and computed with as floats. */
INLINE float f32_of_f16(uint16_t half) {
#ifdef NATIVE_HALVES
  _Float16 x;
  __builtin_memcpy(&x, &half, sizeof x);
  return (float)x;
#else
  const uint32_t sign = ((uint32_t)half & 0x8000u) << 16;
  const uint32_t size = ((uint32_t)half & 0x7FFFu) << 13;
  const uint32_t finite = bits_of_f32(f32_of_bits(size) * 0x1p112f);
  return f32_of_bits(sign | (size >= 0x0F800000u ? size | 0x7F800000u : finite));
#endif
}

/* Rounds to nearest, ties to even. */
INLINE uint16_t f16_of_f32(float x) {
#ifdef NATIVE_HALVES
  const _Float16 half = (_Float16)x;
  uint16_t bits;
  __builtin_memcpy(&bits, &half, sizeof bits);
  return bits;
#else
  const uint32_t all = bits_of_f32(x), sign = (all >> 16) & 0x8000u, size = all & 0x7FFFFFFFu;
  const uint32_t normal = (size - 0x38000000u + 0xFFFu + ((size >> 13) & 1u)) >> 13;
  const uint32_t small = bits_of_f32(f32_of_bits(size) + 0.5f) - 0x3F000000u;
  const uint32_t finite = size >= 0x38800000u ? normal : small;
  const uint32_t large = size > 0x7F800000u ? 0x7E00u : 0x7C00u; /* NaN, infinity */
  return (uint16_t)(sign | (size >= 0x477FF000u ? large : finite));
#endif
}

/* Neighbouring halves as floats, and back. */
INLINE void load_halves(float *to, const uint16_t *from, int count) {
  int k = 0;
#if defined(__F16C__) && defined(__AVX512F__)
  for (; k + 16 <= count; k += 16) {
    const __m256i half = _mm256_loadu_si256((const __m256i *)(from + k));
    _mm512_storeu_ps(to + k, _mm512_cvtph_ps(half));
  }
#endif
#ifdef __F16C__
  for (; k + 8 <= count; k += 8)
    _mm256_storeu_ps(to + k, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + k))));
#endif
  SIMD
  for (int rest = k; rest < count; ++rest) to[rest] = f32_of_f16(from[rest]);
}

INLINE void store_halves(uint16_t *to, const float *from, int count) {
  int k = 0;
#if defined(__F16C__) && defined(__AVX512F__)
  for (; k + 16 <= count; k += 16)
    _mm256_storeu_si256((__m256i *)(to + k), _mm512_cvtps_ph(_mm512_loadu_ps(from + k), 8));
#endif
#ifdef __F16C__
  for (; k + 8 <= count; k += 8)
    _mm_storeu_si128((__m128i *)(to + k), _mm256_cvtps_ph(_mm256_loadu_ps(from + k), 0));
#endif
  SIMD
  for (int rest = k; rest < count; ++rest) to[rest] = f16_of_f32(from[rest]);
}

INLINE float round_f16(float x) { return f32_of_f16(f16_of_f32(x)); }

/* Rounded once: the float in between is rounded to odd. */
INLINE float round_f16_of_f64(double x) {
  const float near = (float)x;
  const double back = (double)near;
  const uint32_t bits = bits_of_f32(near);
  const uint32_t below = bits - (__builtin_fabs(back) > __builtin_fabs(x) ? 1u : 0u);
  const _Bool exact = !(back < x) & !(back > x);
  return round_f16(f32_of_bits(exact ? bits : below | 1u));
}

/* Rounded once: the product is exact in f64, the sum is rounded to odd. */
INLINE float fma_f16(float a, float b, float c) {
  const double product = (double)a * (double)b, wide = (double)c, total = product + wide;
  const double back = total - product, error = (product - (total - back)) + (wide - back);
  const int64_t bits = bits_of_f64(total);
  const _Bool move = (error != 0) & ((bits & 1) == 0) & (total - total == 0);
  const int64_t odd = bits + ((error > 0) == (total > 0) ? 1 : -1);
  return round_f16_of_f64(f64_of_bits(move ? odd : bits));
}

/* Integers of the IR that are no index may overflow where the result is not used. */
INLINE int32_t add_s32(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }

INLINE int32_t sub_s32(int32_t a, int32_t b) { return (int32_t)((uint32_t)a - (uint32_t)b); }

INLINE int32_t mul_s32(int32_t a, int32_t b) { return (int32_t)((uint32_t)a * (uint32_t)b); }

INLINE int64_t add_s64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

INLINE int64_t sub_s64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }

INLINE int64_t mul_s64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

/* Floor division by what is positive. */
INLINE int32_t fdiv_s32(int32_t a, int32_t b) { return a / b - (a % b < 0); }

INLINE int32_t mod_s32(int32_t a, int32_t b) { return a % b + (a % b < 0 ? b : 0); }

INLINE int64_t fdiv_s64(int64_t a, int64_t b) { return a / b - (a % b < 0); }

INLINE int64_t mod_s64(int64_t a, int64_t b) { return a % b + (a % b < 0 ? b : 0); }

/* Shift amounts count modulo the width. */
INLINE int32_t shl_s32(int32_t a, uint32_t n) { return (int32_t)((uint32_t)a << (n & 31u)); }

INLINE int32_t shr_s32(int32_t a, uint32_t n) { return a >> (n & 31u); }

INLINE uint32_t shl_u32(uint32_t a, uint32_t n) { return a << (n & 31u); }

INLINE uint32_t shr_u32(uint32_t a, uint32_t n) { return a >> (n & 31u); }

INLINE int64_t shl_s64(int64_t a, uint32_t n) { return (int64_t)((uint64_t)a << (n & 63u)); }

INLINE int64_t shr_s64(int64_t a, uint32_t n) { return a >> (n & 63u); }

INLINE int32_t abs_s32(int32_t a) { return a < 0 ? sub_s32(0, a) : a; }

INLINE int64_t abs_s64(int64_t a) { return a < 0 ? sub_s64(0, a) : a; }

INLINE int32_t sign_s32(int32_t a) { return (a > 0) - (a < 0); }

INLINE int64_t sign_s64(int64_t a) { return (a > 0) - (a < 0); }

INLINE uint32_t sign_u32(uint32_t a) { return a > 0u; }

INLINE int32_t min_s32(int32_t a, int32_t b) { return a < b ? a : b; }

INLINE int32_t max_s32(int32_t a, int32_t b) { return a > b ? a : b; }

INLINE uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }

INLINE uint32_t max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }

INLINE int64_t min_s64(int64_t a, int64_t b) { return a < b ? a : b; }

INLINE int64_t max_s64(int64_t a, int64_t b) { return a > b ? a : b; }

INLINE int32_t popcount_s32(int32_t a) { return __builtin_popcount((uint32_t)a); }

INLINE uint32_t popcount_u32(uint32_t a) { return (uint32_t)__builtin_popcount(a); }

INLINE int64_t popcount_s64(int64_t a) { return __builtin_popcountll((uint64_t)a); }

INLINE int32_t pow_s32(int32_t base, int32_t exponent) {
  int32_t result = 1;
  for (uint32_t left = exponent > 0 ? (uint32_t)exponent : 0u; left; left >>= 1) {
    result = left & 1u ? mul_s32(result, base) : result;
    base = mul_s32(base, base);
  }
  return result;
}

INLINE uint32_t pow_u32(uint32_t base, uint32_t exponent) {
  uint32_t result = 1;
  for (uint32_t left = exponent; left; left >>= 1) {
    result = left & 1u ? result * base : result;
    base *= base;
  }
  return result;
}

INLINE int64_t pow_s64(int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (uint64_t left = exponent > 0 ? (uint64_t)exponent : 0u; left; left >>= 1) {
    result = left & 1u ? mul_s64(result, base) : result;
    base = mul_s64(base, base);
  }
  return result;
}

/* NaN passes as the right operand. */
INLINE float min_f32(float a, float b) { return a < b ? a : b; }

INLINE float max_f32(float a, float b) { return a > b ? a : b; }

INLINE double min_f64(double a, double b) { return a < b ? a : b; }

INLINE double max_f64(double a, double b) { return a > b ? a : b; }

INLINE float sign_f32(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : x == x ? 0.0f : x; }

INLINE double sign_f64(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x == x ? 0.0 : x; }

INLINE float rsqrt_f32(float x) { return 1.0f / __builtin_sqrtf(x); }

INLINE double rsqrt_f64(double x) { return 1.0 / __builtin_sqrt(x); }

INLINE float fdiv_f32(float a, float b) { return __builtin_floorf(a / b); }

INLINE double fdiv_f64(double a, double b) { return __builtin_floor(a / b); }

INLINE float mod_f32(float a, float b) { return a - __builtin_floorf(a / b) * b; }

INLINE double mod_f64(double a, double b) { return a - __builtin_floor(a / b) * b; }

/* NaN for NaN. */
INLINE float at_most(float x, float bound) { return bound < x ? bound : x; }

INLINE float at_least(float x, float bound) { return x < bound ? bound : x; }

INLINE float abs_f32(float x) { return f32_of_bits(bits_of_f32(x) & 0x7FFFFFFFu); }

INLINE float with_sign_of(float size, float x) {
  return f32_of_bits(bits_of_f32(size) | (bits_of_f32(x) & 0x80000000u));
}

/* 2**n for n in -126..127. */
INLINE float power_of_two(int32_t n) { return f32_of_bits((uint32_t)(n + 127) << 23); }

/* size * 2**n for n in -252..254, rounded once. */
INLINE float scaled(float size, int32_t n) {
  const int32_t half = n >> 1;
  return size * power_of_two(half) * power_of_two(n - half);
}

/* The nearest integer, in the low bits of the sum, for |x| < 2**22. */
INLINE int32_t rounded(float x) { return (int32_t)(bits_of_f32(x + 12582912.0f) - 0x4B400000u); }

/* x - n ln(2), with n = x / ln(2) rounded. */
INLINE float reduced_exp(float x) {
  const float n = (x * 1.4426950408889634f + 12582912.0f) - 12582912.0f;
  return mad_f32(-n, 1.4286068203094173e-06f, mad_f32(-n, 0.693145751953125f, x));
}

/* exp(r) - 1 for |r| <= ln(2) / 2. */
INLINE float expm1_reduced(float r) {
  float p = 0.0013814598603289455f;
  p = mad_f32(p, r, 0.008368716882017794f);
  p = mad_f32(p, r, 0.041668388046986644f);
  p = mad_f32(p, r, 0.16666520631685655f);
  p = mad_f32(p, r, 0.4999999344778307f);
  return mad_f32(r * r, p, r);
}

INLINE float exp_f32(float x) {
  x = at_least(at_most(x, 89.0f), -104.0f);
  return scaled(1.0f + expm1_reduced(reduced_exp(x)), rounded(x * 1.4426950408889634f));
}

INLINE float exp2_f32(float x) {
  x = at_least(at_most(x, 129.0f), -151.0f);
  const float n = (x + 12582912.0f) - 12582912.0f;
  return scaled(1.0f + expm1_reduced((x - n) * 0.6931471805599453f), rounded(x));
}

INLINE float tanh_f32(float x) {
  const float t = at_most(abs_f32(x) * 2.0f, 20.0f);
  const float scale = power_of_two(rounded(t * 1.4426950408889634f));
  const float em1 = mad_f32(scale, expm1_reduced(reduced_exp(t)), scale - 1.0f);
  return with_sign_of(em1 / (em1 + 2.0f), x);
}

/* x = (1 + f) 2**e with 1 + f in sqrt(1/2)..sqrt(2), for any positive x: e, then f. */
INLINE int32_t log_bits(float x) {
  return (int32_t)bits_of_f32(x < 1.1754943508222875e-38f ? x * 8388608.0f : x);
}

INLINE float log_exponent(float x) {
  const int32_t e = (log_bits(x) - 0x3F3504F3) >> 23;
  return (float)(e - (x < 1.1754943508222875e-38f ? 23 : 0));
}

INLINE float log_fraction(float x) {
  const int32_t bits = log_bits(x);
  const int32_t e = (bits - 0x3F3504F3) >> 23;
  return f32_of_bits((uint32_t)bits - ((uint32_t)e << 23)) - 1.0f;
}

/* log(1 + f) - f. */
INLINE float log_tail(float f) {
  const float square = f * f;
  float p = -0.07634498042766336f;
  p = mad_f32(p, f, 0.12761577397347124f);
  p = mad_f32(p, f, -0.13160181972012658f);
  p = mad_f32(p, f, 0.14201757924932695f);
  p = mad_f32(p, f, -0.16623357382051454f);
  p = mad_f32(p, f, 0.20001226880602196f);
  p = mad_f32(p, f, -0.250008210332959f);
  p = mad_f32(p, f, 0.33333331707662256f);
  return mad_f32(square * f, p, -(0.5f * square));
}

INLINE float log_edges(float x, float value) {
  const float other = x == 0.0f ? -__builtin_inff() : __builtin_nanf("");
  value = x == __builtin_inff() ? __builtin_inff() : value;
  return x > 0.0f ? value : other;
}

INLINE float log_f32(float x) {
  const float regular = x > 0.0f ? x : 1.0f;
  const float f = log_fraction(regular), e = log_exponent(regular);
  const float tail = mad_f32(e, 1.4286068203094173e-06f, log_tail(f));
  return log_edges(x, mad_f32(e, 0.693145751953125f, tail + f));
}

INLINE float log2_f32(float x) {
  const float regular = x > 0.0f ? x : 1.0f;
  const float f = log_fraction(regular), e = log_exponent(regular), tail = log_tail(f);
  const float small = mad_f32(tail, 1.4423828125f, f * 1.4423828125f);
  return log_edges(x, mad_f32(tail + f, 0.00031222838896340733f, small) + e);
}

INLINE float erf_small(float x) {
  const float y = x * x;
  float p = 7.85386122163162e-05f;
  p = mad_f32(p, y, -0.0008010193590283493f);
  p = mad_f32(p, y, 0.005188327682371744f);
  p = mad_f32(p, y, -0.026853811933870812f);
  p = mad_f32(p, y, 0.11283585148589138f);
  p = mad_f32(p, y, -0.37612625824232365f);
  p = mad_f32(p, y, 0.1283791657267117f);
  return mad_f32(x, p, x);
}

INLINE float erf_large(float t) {
  const float c = at_most(t, 4.0f);
  float p = -0.00018637915459550543f;
  p = mad_f32(p, c, 0.002947657972609502f);
  p = mad_f32(p, c, -0.02183806277236472f);
  p = mad_f32(p, c, 0.10310675213817361f);
  p = mad_f32(p, c, 0.638144835469815f);
  p = mad_f32(p, c, 0.12708918860924984f);
  p = mad_f32(p, c, 0.00034152339215798907f);
  const float power = 0.0f - (c + p);
  const float size = 1.0f + expm1_reduced(reduced_exp(power));
  return 1.0f - size * power_of_two(rounded(power * 1.4426950408889634f));
}

INLINE float erf_f32(float x) {
  const float t = abs_f32(x);
  return t < 1.0f ? erf_small(x) : with_sign_of(erf_large(t), x);
}

INLINE double erf_small_f64(double x) {
  const double y = x * x;
  double p = 5.943508233981782e-11;
  p = p * y + -1.1364607520605601e-09;
  p = p * y + 1.4657600165778558e-08;
  p = p * y + -1.634998274189769e-07;
  p = p * y + 1.6460968721975601e-06;
  p = p * y + -1.4925593245923501e-05;
  p = p * y + 0.00012055331025793798;
  p = p * y + -0.0008548326978430694;
  p = p * y + 0.0052239776247753195;
  p = p * y + -0.02686617064507231;
  p = p * y + 0.11283791670954854;
  p = p * y + -0.3761263890318375;
  p = p * y + 0.1283791670955126;
  return x * p + x;
}

INLINE double erf_f64(double x) {
  const double t = __builtin_fabs(x), c = 6.0 < t ? 6.0 : t;
  double p = 1.4037290379875538e-10;
  p = p * c + -6.108861791111064e-09;
  p = p * c + 1.21874877166355e-07;
  p = p * c + -1.4864687121405235e-06;
  p = p * c + 1.2429175677871524e-05;
  p = p * c + -7.537028051739016e-05;
  p = p * c + 0.00033896003655070915;
  p = p * c + -0.0011123506782310065;
  p = p * c + 0.002363519850777701;
  p = p * c + -0.0008633325929372303;
  p = p * c + -0.018643922000662835;
  p = p * c + 0.10250997955540551;
  p = p * c + 0.6367180540567245;
  p = p * c + 0.12835648064765545;
  p = p * c + 2.432725130449483e-06;
  const double tail = 1.0 - __builtin_exp(0.0 - (c + p));
  return t < 1.0 ? erf_small_f64(x) : x < 0.0 ? -tail : tail;
}

INLINE float atan_unit(float z) {
  const float y = z * z;
  float p = -0.0017936224392763808f;
  p = mad_f32(p, y, 0.010914609075736149f);
  p = mad_f32(p, y, -0.03117785214742981f);
  p = mad_f32(p, y, 0.05795759997175137f);
  p = mad_f32(p, y, -0.0840345070577555f);
  p = mad_f32(p, y, 0.10952185904851564f);
  p = mad_f32(p, y, -0.14264241705059644f);
  p = mad_f32(p, y, 0.199985482866891f);
  p = mad_f32(p, y, -0.33333299089222423f);
  return mad_f32(y * z, p, z);
}

/* pi/2 - angle, with pi/2 to twice the precision. */
INLINE float complement(float angle) {
  return 1.5707963705062866f - (angle - -4.3711390001862426e-08f);
}

INLINE float atan_f32(float x) {
  const float t = abs_f32(x);
  const float angle = atan_unit(t > 1.0f ? 1.0f / t : t);
  return with_sign_of(t > 1.0f ? complement(angle) : angle, x);
}

INLINE float atan2_f32(float y, float x) {
  const float a = abs_f32(y), b = abs_f32(x);
  const _Bool steep = a > b;
  const float low = steep ? b : a, high = steep ? a : b;
  const float same = high == 0.0f ? 0.0f : 1.0f;
  float angle = atan_unit(low == high ? same : low / high);
  angle = steep ? complement(angle) : angle;
  const float back = 3.1415927410125732f - (angle - -8.742278000372485e-08f);
  angle = (int32_t)bits_of_f32(x) < 0 ? back : angle;
  const _Bool defined = (x == x) & (y == y);
  return defined ? with_sign_of(angle, y) : x + y;
}

/* x = q pi/2 + r, |r| <= pi/4, reduced in f64: q modulo 2**31, then r. */
INLINE int32_t quadrant(float x) {
  return (int32_t)bits_of_f64((double)x * 0.6366197723675814 + 6755399441055744.0);
}

INLINE float reduced_angle(float x) {
  const double wide = (double)x;
  const double n = (wide * 0.6366197723675814 + 6755399441055744.0) - 6755399441055744.0;
  double r = wide - n * 1.570796251296997;
  r = r - n * 7.549789415861596e-08;
  r = r - n * 5.390302858158119e-15;
  return at_least(at_most((float)r, 1.0f), -1.0f);
}

INLINE float sin_reduced(float r) {
  const float y = r * r;
  float p = -0.000195152180924653f;
  p = mad_f32(p, y, 0.008332160291718729f);
  p = mad_f32(p, y, -0.1666665460227428f);
  return with_sign_of(mad_f32(y * r, p, r), r); /* the sum loses the sign of -0 */
}

INLINE float cos_reduced(float r) {
  const float y = r * r;
  float p = 2.443308267913466e-05f;
  p = mad_f32(p, y, -0.00138873156163984f);
  p = mad_f32(p, y, 0.04166664567015252f);
  return mad_f32(y * y, p, 1.0f - 0.5f * y);
}

INLINE float sin_f32(float x) {
  const float r = reduced_angle(x);
  const int32_t q = quadrant(x);
  const float size = (q & 1) != 0 ? cos_reduced(r) : sin_reduced(r);
  return (q & 2) != 0 ? -size : size;
}

INLINE float cos_f32(float x) {
  const float r = reduced_angle(x);
  const int32_t q = (quadrant(x) & 3) + 1;
  const float size = (q & 1) != 0 ? cos_reduced(r) : sin_reduced(r);
  return (q & 2) != 0 ? -size : size;
}

INLINE float tan_f32(float x) {
  const float r = reduced_angle(x), sine = sin_reduced(r), cosine = cos_reduced(r);
  const _Bool odd = (quadrant(x) & 1) != 0;
  return (odd ? -cosine : sine) / (odd ? sine : cosine);
}

INLINE float fast_exp_f32(float x) {
  x = at_least(at_most(x, 89.0f), -87.3f);
  const float shifted = mad_f32(x, 1.4426950408889634f, 12583038.0f), n = shifted - 12583038.0f;
  const float r = mad_f32(-n, 1.4286068203094173e-06f, mad_f32(-n, 0.693145751953125f, x));
  float p = 0.082916383395583782f;
  p = mad_f32(p, r, 0.33582309205481952f);
  p = mad_f32(p, r, 1.0000875223787808f);
  p = mad_f32(p, r, 1.9999265197824738f);
  p = mad_f32(p, r, 1.9999985140376146f);
  return p * f32_of_bits(bits_of_f32(shifted) << 23);
}

INLINE float fast_tanh_f32(float x) {
  x = at_least(at_most(x, 6.8f), -6.8f);
  const float y = x * x;
  float p = mad_f32(4.106360847799806e-06f, y, 0.0023156353272497654f);
  p = mad_f32(p, y, 0.12346744537353516f);
  p = mad_f32(p, y, 0.9999991655349731f);
  float q = mad_f32(0.00014647703210357577f, y, 0.02125529944896698f);
  q = mad_f32(q, y, 0.4567944407463074f);
  q = mad_f32(q, y, 1.0f);
  return x * p / q;
}

INLINE float fast_erf_f32(float x) {
  x = at_least(at_most(x, 3.3f), -3.3f);
  const float y = x * x;
  float p = mad_f32(0.0007446263334713876f, y, 0.04312683269381523f);
  p = mad_f32(p, y, 0.15474508702754974f);
  p = mad_f32(p, y, 1.1283771991729736f);
  float q = mad_f32(0.00925475638359785f, y, 0.0949496254324913f);
  q = mad_f32(q, y, 0.4704851806163788f);
  q = mad_f32(q, y, 1.0f);
  return x * p / q;
}

/* log2 of a positive normal number. */
INLINE double pow_log2(double x) {
  const int64_t bits = bits_of_f64(x);
  const int64_t e = (bits - 0x3FE6A09E667F3BCD) >> 52;
  const double m = f64_of_bits((int64_t)((uint64_t)bits - ((uint64_t)e << 52)));
  const double t = (m - 1.0) / (m + 1.0), y = t * t;
  double p = 2.8853900817779268 / 15;
  p = p * y + 2.8853900817779268 / 13;
  p = p * y + 2.8853900817779268 / 11;
  p = p * y + 2.8853900817779268 / 9;
  p = p * y + 2.8853900817779268 / 7;
  p = p * y + 2.8853900817779268 / 5;
  p = p * y + 2.8853900817779268 / 3;
  p = p * y + 2.8853900817779268;
  return t * p + (double)(int32_t)e;
}

/* 2**p for |p| <= 200. */
INLINE double pow_exp2(double p) {
  const double shifted = p + 6755399441055744.0, f = p - (shifted - 6755399441055744.0);
  double s = 1.01780860092396997e-07;
  s = s * f + 1.32154867901443094e-06;
  s = s * f + 1.52527338040598403e-05;
  s = s * f + 1.54035303933816100e-04;
  s = s * f + 1.33335581464284434e-03;
  s = s * f + 9.61812910762847716e-03;
  s = s * f + 5.55041086648215800e-02;
  s = s * f + 2.40226506959100712e-01;
  s = s * f + 6.93147180559945309e-01;
  s = s * f + 1.0;
  return s * f64_of_bits((int64_t)((uint64_t)(bits_of_f64(shifted) + 1023) << 52));
}

INLINE float pow_f32(float x, float y) {
  const float size = abs_f32(x), inf = __builtin_inff(), nan = __builtin_nanf("");
  const _Bool regular = (size > 0.0f) & (size < inf);
  double p = pow_log2((double)(regular ? size : 1.0f)) * (double)y;
  p = 200.0 < p ? 200.0 : p;
  p = p < -200.0 ? -200.0 : p;
  const _Bool rises = (size > 1.0f) == (y > 0.0f);
  float value = (float)pow_exp2(p);
  value = regular ? value : rises ? inf : 0.0f;
  const float half = y * 0.5f;
  const _Bool whole = __builtin_floorf(y) == y;
  const _Bool odd = whole & (__builtin_floorf(half) != half);
  const float turned = odd ? -value : value;
  const float below = whole | !regular ? turned : nan;
  value = (int32_t)bits_of_f32(x) < 0 ? below : value;
  value = (x == x) & (y == y) ? value : nan;
  const _Bool unit = (size == 1.0f) & (abs_f32(y) == inf);
  return (y == 0.0f) | (x == 1.0f) | unit ? 1.0f : value;
}
