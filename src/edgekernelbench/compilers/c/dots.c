/* Dot products of bytes: acc[l] += a[4 l] b[4 l] + .. + a[4 l + 3] b[4 l + 3]. Operands come as
 * registers, an s32 a lane. */

/* The first few of four bytes, and zeros behind them. */
INLINE int32_t word_of(const void *bytes, int count) {
  const uint8_t *at = bytes;
  uint32_t word = 0;
  if (count == 4) {
    __builtin_memcpy(&word, bytes, 4);
    return (int32_t)word;
  }
  for (int k = 0; k < count; ++k) word |= (uint32_t)at[k] << 8 * k;
  return (int32_t)word;
}

INLINE __m512i moving_512(const void *bytes, int32_t flip) {
  return _mm512_xor_si512(_mm512_loadu_si512(bytes), _mm512_set1_epi32(flip));
}

INLINE __m256i moving_256(const void *bytes, int32_t flip) {
  return _mm256_xor_si256(_mm256_loadu_si256(bytes), _mm256_set1_epi32(flip));
}

INLINE __m128i moving_128(const void *bytes, int32_t flip) {
  return _mm_xor_si128(_mm_loadu_si128(bytes), _mm_set1_epi32(flip));
}

INLINE __m512i still_512(const void *bytes, int count, int32_t flip) {
  return _mm512_set1_epi32(word_of(bytes, count) ^ flip);
}

INLINE __m256i still_256(const void *bytes, int count, int32_t flip) {
  return _mm256_set1_epi32(word_of(bytes, count) ^ flip);
}

INLINE __m128i still_128(const void *bytes, int count, int32_t flip) {
  return _mm_set1_epi32(word_of(bytes, count) ^ flip);
}

INLINE void vpdpbusd_512(int32_t *acc, __m512i a, __m512i b) {
  _mm512_storeu_si512(acc, _mm512_dpbusd_epi32(_mm512_loadu_si512(acc), a, b));
}

INLINE void vpdpbusd_256(int32_t *acc, __m256i a, __m256i b) {
  __m256i *at = (__m256i *)acc;
#ifdef __AVX512VNNI__
  _mm256_storeu_si256(at, _mm256_dpbusd_epi32(_mm256_loadu_si256(at), a, b));
#else
  _mm256_storeu_si256(at, _mm256_dpbusd_avx_epi32(_mm256_loadu_si256(at), a, b));
#endif
}

INLINE void vpdpbusd_128(int32_t *acc, __m128i a, __m128i b) {
  __m128i *at = (__m128i *)acc;
#ifdef __AVX512VNNI__
  _mm_storeu_si128(at, _mm_dpbusd_epi32(_mm_loadu_si128(at), a, b));
#else
  _mm_storeu_si128(at, _mm_dpbusd_avx_epi32(_mm_loadu_si128(at), a, b));
#endif
}

INLINE void vpdpbssd_256(int32_t *acc, __m256i a, __m256i b) {
  __m256i *at = (__m256i *)acc;
  _mm256_storeu_si256(at, _mm256_dpbssd_epi32(_mm256_loadu_si256(at), a, b));
}

INLINE void vpdpbssd_128(int32_t *acc, __m128i a, __m128i b) {
  __m128i *at = (__m128i *)acc;
  _mm_storeu_si128(at, _mm_dpbssd_epi32(_mm_loadu_si128(at), a, b));
}

INLINE void vpdpbuud_256(int32_t *acc, __m256i a, __m256i b) {
  __m256i *at = (__m256i *)acc;
  _mm256_storeu_si256(at, _mm256_dpbuud_epi32(_mm256_loadu_si256(at), a, b));
}

INLINE void vpdpbuud_128(int32_t *acc, __m128i a, __m128i b) {
  __m128i *at = (__m128i *)acc;
  _mm_storeu_si128(at, _mm_dpbuud_epi32(_mm_loadu_si128(at), a, b));
}

/* Bytes 0 and 2 of each lane, or 1 and 3, widened to s16. */
INLINE __m512i halves_512(__m512i x, int is_signed, int odd) {
  if (is_signed) return _mm512_srai_epi16(odd ? x : _mm512_slli_epi16(x, 8), 8);
  return odd ? _mm512_srli_epi16(x, 8) : _mm512_and_si512(x, _mm512_set1_epi16(0xFF));
}

INLINE __m256i halves_256(__m256i x, int is_signed, int odd) {
  if (is_signed) return _mm256_srai_epi16(odd ? x : _mm256_slli_epi16(x, 8), 8);
  return odd ? _mm256_srli_epi16(x, 8) : _mm256_and_si256(x, _mm256_set1_epi16(0xFF));
}

INLINE __m128i halves_128(__m128i x, int is_signed, int odd) {
  if (is_signed) return _mm_srai_epi16(odd ? x : _mm_slli_epi16(x, 8), 8);
  return odd ? _mm_srli_epi16(x, 8) : _mm_and_si128(x, _mm_set1_epi16(0xFF));
}

INLINE void pairs_512(int32_t *acc, __m512i a, int a_signed, __m512i b, int b_signed) {
  __m512i sum = _mm512_loadu_si512(acc);
  for (int odd = 0; odd < 2; ++odd) {
    const __m512i x = halves_512(a, a_signed, odd), y = halves_512(b, b_signed, odd);
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(x, y));
  }
  _mm512_storeu_si512(acc, sum);
}

INLINE void pairs_256(int32_t *acc, __m256i a, int a_signed, __m256i b, int b_signed) {
  __m256i sum = _mm256_loadu_si256((__m256i *)acc);
  for (int odd = 0; odd < 2; ++odd) {
    const __m256i x = halves_256(a, a_signed, odd), y = halves_256(b, b_signed, odd);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x, y));
  }
  _mm256_storeu_si256((__m256i *)acc, sum);
}

INLINE void pairs_128(int32_t *acc, __m128i a, int a_signed, __m128i b, int b_signed) {
  __m128i sum = _mm_loadu_si128((__m128i *)acc);
  for (int odd = 0; odd < 2; ++odd) {
    const __m128i x = halves_128(a, a_signed, odd), y = halves_128(b, b_signed, odd);
    sum = _mm_add_epi32(sum, _mm_madd_epi16(x, y));
  }
  _mm_storeu_si128((__m128i *)acc, sum);
}

INLINE uint8x16_t moving_neon(const void *bytes, int32_t flip) {
  const uint32x4_t words = vreinterpretq_u32_u8(vld1q_u8(bytes));
  return vreinterpretq_u8_u32(veorq_u32(words, vdupq_n_u32((uint32_t)flip)));
}

INLINE uint8x16_t still_neon(const void *bytes, int count, int32_t flip) {
  return vreinterpretq_u8_u32(vdupq_n_u32((uint32_t)(word_of(bytes, count) ^ flip)));
}

INLINE void sdot_neon(int32_t *acc, uint8x16_t a, uint8x16_t b) {
  const int8x16_t x = vreinterpretq_s8_u8(a), y = vreinterpretq_s8_u8(b);
  vst1q_s32(acc, vdotq_s32(vld1q_s32(acc), x, y));
}

INLINE void udot_neon(int32_t *acc, uint8x16_t a, uint8x16_t b) {
  const uint32x4_t old = vreinterpretq_u32_s32(vld1q_s32(acc));
  vst1q_s32(acc, vreinterpretq_s32_u32(vdotq_u32(old, a, b)));
}

INLINE void usdot_neon(int32_t *acc, uint8x16_t a, uint8x16_t b) {
  vst1q_s32(acc, vusdotq_s32(vld1q_s32(acc), a, vreinterpretq_s8_u8(b)));
}

/* Byte k of an s32, widened. */
INLINE int32_t byte_of(int32_t word, int k, int is_signed) {
  if (is_signed) return (int32_t)((uint32_t)word << (24 - 8 * k)) >> 24;
  return (word >> 8 * k) & 0xFF;
}

/* What every processor can do: lanes after one another, for the compiler to vectorise. */
INLINE void words(int32_t *acc, int lanes, int count, const void *a, int a_step, int32_t a_flip,
                  int a_signed, const void *b, int b_step, int32_t b_flip, int b_signed) {
  const char *left = a, *right = b;
  SIMD
  for (int l = 0; l < lanes; ++l) {
    int32_t x, y, sum = acc[l];
    if (a_step) __builtin_memcpy(&x, left + 4 * l, 4); else x = word_of(left, count);
    if (b_step) __builtin_memcpy(&y, right + 4 * l, 4); else y = word_of(right, count);
    x ^= a_flip;
    y ^= b_flip;
    for (int k = 0; k < count; ++k) sum += byte_of(x, k, a_signed) * byte_of(y, k, b_signed);
    acc[l] = sum;
  }
}
