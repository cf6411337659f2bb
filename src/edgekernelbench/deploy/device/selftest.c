/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a kernel on the golden inputs, with one thread and with all, and judges its outputs.
 *
 *   selftest [--golden FOLDER] [--threads N] [--repeat N]
 *
 * Exit status: 0 all right, 1 an output is wrong, 2 the test could not be carried out.
 * --repeat also times N calls in a row and prints the median.
 */
#define _GNU_SOURCE
#include "selftest.h"

#include "ekb_runtime.h"

#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GUARD 64 /* bytes before and after each output that no kernel may touch */
#define MOST_TENSORS EKB_MOST_ARGUMENTS

static _Noreturn void stop(const char *what, const char *which) {
  fprintf(stderr, "selftest: %s: %s\n", which, what);
  exit(2);
}

static void *need(void *memory, const char *which) {
  if (!memory) stop("there is no memory for it", which);
  return memory;
}

/* ---------------------------------------------------------------- golden files */
static void *load(const char *folder, int number, const char *kind, int place, const char *name,
                  size_t bytes) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%d/%s%d-%s.bin", folder, number, kind, place, name);
  FILE *file = fopen(path, "rb");
  if (!file) stop("cannot be opened", path);
  char *data = need(ekb_alloc(bytes), path);
  if (fread(data, 1, bytes, file) != bytes || fgetc(file) != EOF) stop("has another size", path);
  fclose(file);
  return data;
}

static size_t element_bytes(st_dtype dtype) {
  static const size_t bytes[] = {2, 4, 8, 1, 1, 2, 2, 4, 4, 8, 1};
  return bytes[dtype];
}

static int is_float(st_dtype dtype) { return dtype <= ST_F64; }

static double half(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                : exponent     ? ldexp(1024 + fraction, exponent - 25)
                               : ldexp(fraction, -24);
  return bits >> 15 ? -size : size;
}

static double float_at(const void *data, st_dtype dtype, size_t k) {
  if (dtype == ST_F16) return half(((const uint16_t *)data)[k]);
  return dtype == ST_F32 ? ((const float *)data)[k] : ((const double *)data)[k];
}

static int64_t integer_at(const void *data, st_dtype dtype, size_t k) {
  switch (dtype) {
    case ST_S8: return ((const int8_t *)data)[k];
    case ST_S16: return ((const int16_t *)data)[k];
    case ST_U16: return ((const uint16_t *)data)[k];
    case ST_S32: return ((const int32_t *)data)[k];
    case ST_U32: return ((const uint32_t *)data)[k];
    case ST_S64: return ((const int64_t *)data)[k];
    default: return ((const uint8_t *)data)[k];
  }
}

/* ---------------------------------------------------------------- the judgement */
typedef struct {
  size_t matched, nonzero, nonzero_matched, stray; /* stray: NaN or infinite on one side only */
  double worst, dot, output_norm, truth_norm;
} score;

static double scaled(double error, double allowed) {
  return error == 0 ? 0 : allowed > 0 ? error / allowed : INFINITY;
}

static void count(score *s, double times, int matched, int nonzero) {
  if (times > s->worst) s->worst = times;
  s->matched += matched;
  s->nonzero += nonzero;
  s->nonzero_matched += matched && nonzero;
}

static void score_float(score *s, double output, double truth, double rtol, double atol) {
  if (!isfinite(truth)) {
    int same = isnan(truth) ? isnan(output) : output == truth;
    s->stray += !same;
    count(s, same ? 0 : INFINITY, same, 1);
  } else if (!isfinite(output)) {
    s->stray++;
    count(s, INFINITY, 0, truth != 0);
  } else {
    double times = scaled(fabs(output - truth), rtol * fabs(truth) + atol);
    count(s, times, times <= 1, truth != 0);
    s->dot += output * truth;
    s->output_norm += output * output;
    s->truth_norm += truth * truth;
  }
}

static void score_integer(score *s, int64_t output, int64_t truth, int lsb) {
  double error = output > truth ? (double)output - (double)truth : (double)truth - (double)output;
  if (output != truth && error == 0) error = 1; /* two that one double stands for */
  count(s, lsb ? error / lsb : error ? INFINITY : 0, output == truth, truth != 0);
}

static score scored(const st_output *o, int number, const void *output, const void *truth) {
  score s = {0};
  for (size_t k = 0; k < o->count; k++) {
    if (is_float(o->dtype))
      score_float(&s, float_at(output, o->dtype, k), ((const double *)truth)[k], o->rtol,
                  o->atol[number]);
    else
      score_integer(&s, integer_at(output, o->dtype, k), integer_at(truth, o->dtype, k), o->lsb);
  }
  return s;
}

static double cosine(const score *s) {
  double norms = sqrt(s->output_norm) * sqrt(s->truth_norm);
  if (norms == 0) return s->output_norm == 0 && s->truth_norm == 0 ? 1 : 0;
  return s->dot / norms;
}

/* The rule that is broken, NULL if none is. */
static const char *broken(const st_output *o, const score *s) {
  if (s->stray) return "NaN or infinite where the other is not";
  if (s->worst > o->cap) return "an element is off too far";
  if ((double)s->matched < o->matched * (double)o->count) return "too few elements match";
  if ((double)s->nonzero_matched < o->matched * (double)s->nonzero)
    return "too few elements match where the truth is not 0";
  if (is_float(o->dtype) && o->cosine >= -1 && !(cosine(s) >= o->cosine))
    return "the direction is another";
  return NULL;
}

/* ---------------------------------------------------------------- the runs */
typedef struct {
  char *whole; /* with the guards */
  char *data;
  size_t bytes;
} guarded;

static guarded make_guarded(const st_output *o) {
  guarded made = {0};
  made.bytes = o->count * element_bytes(o->dtype);
  made.whole = need(ekb_alloc(made.bytes + 2 * GUARD), o->name);
  made.data = made.whole + GUARD;
  return made;
}

/* 0xA5 everywhere: what the kernel leaves out is wrong, and what it writes beside shows. */
static void poison(guarded *g) { memset(g->whole, 0xA5, g->bytes + 2 * GUARD); }

static int untouched(const guarded *g) {
  const unsigned char *before = (const unsigned char *)g->whole;
  const unsigned char *after = before + GUARD + g->bytes;
  for (int k = 0; k < GUARD; k++)
    if (before[k] != 0xA5 || after[k] != 0xA5) return 0;
  return 1;
}

static int judge(const st_output *o, int number, const guarded *g, const void *truth) {
  score s = scored(o, number, g->data, truth);
  const char *rule = untouched(g) ? broken(o, &s) : "memory beside the output was written";
  printf("case %d, %2d threads, %-16s %s", number, ekb_threads(), o->name, rule ? "WRONG" : "right");
  printf(", %zu of %zu match, worst error %.3g of what is allowed", s.matched, o->count, s.worst);
  printf(rule ? ": %s\n" : "\n", rule);
  return rule != NULL;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void call(void *const *inputs, void *const *outputs) {
  if (st_call(inputs, outputs)) stop(ekb_error(), st_kernel);
}

static void measure(void *const *inputs, void *const *outputs, int times) {
  double *taken = need(malloc((size_t)times * sizeof *taken), "the times");
  call(inputs, outputs);
  for (int k = 0; k < times; k++) {
    double began = seconds();
    call(inputs, outputs);
    taken[k] = seconds() - began;
  }
  qsort(taken, (size_t)times, sizeof *taken, ascending);
  printf("%s: median of %d calls %.2f us, %d threads\n", st_kernel, times,
         1e6 * taken[times / 2], ekb_threads());
  free(taken);
}

typedef struct {
  const char *golden;
  int threads, repeat;
} options;

static int run_case(const options *o, int number) {
  void *inputs[MOST_TENSORS], *outputs[MOST_TENSORS], *truths[MOST_TENSORS], *copies[MOST_TENSORS];
  guarded made[MOST_TENSORS];
  int wrong = 0;
  for (int k = 0; k < st_input_count; k++) {
    inputs[k] = load(o->golden, number, "in", k, st_inputs[k].name, st_inputs[k].bytes);
    copies[k] = memcpy(need(ekb_alloc(st_inputs[k].bytes), "a copy"), inputs[k],
                       st_inputs[k].bytes);
  }
  for (int k = 0; k < st_output_count; k++) {
    const st_output *output = &st_outputs[k];
    size_t each = is_float(output->dtype) ? 8 : element_bytes(output->dtype);
    truths[k] = load(o->golden, number, "out", k, output->name, each * output->count);
    made[k] = make_guarded(output);
    outputs[k] = made[k].data;
  }
  for (int threads = 1;; threads = o->threads) {
    ekb_set_threads(threads);
    for (int k = 0; k < st_output_count; k++) poison(&made[k]);
    call(inputs, outputs);
    for (int k = 0; k < st_output_count; k++)
      wrong |= judge(&st_outputs[k], number, &made[k], truths[k]);
    if (threads == o->threads) break;
  }
  if (o->repeat && number == 0) measure(inputs, outputs, o->repeat);
  for (int k = 0; k < st_input_count; k++) {
    if (memcmp(inputs[k], copies[k], st_inputs[k].bytes)) {
      printf("case %d: input %s was written\n", number, st_inputs[k].name);
      wrong = 1;
    }
    ekb_free(inputs[k]), ekb_free(copies[k]);
  }
  for (int k = 0; k < st_output_count; k++) ekb_free(made[k].whole), ekb_free(truths[k]);
  return wrong;
}

static void no_such_instruction(int signal) {
  (void)signal;
  static const char said[] = "selftest: this processor lacks an instruction of the kernel, which "
                             "was built for another one: see README.md\n";
  ssize_t written = write(2, said, sizeof said - 1);
  _exit(written < 0 ? 3 : 2);
}

static options parse(int count, char **words) {
  options found = {"golden", ekb_threads(), 0};
  for (int k = 1; k < count; k += 2) {
    if (k + 1 == count) stop("needs a value", words[k]);
    if (!strcmp(words[k], "--golden")) found.golden = words[k + 1];
    else if (!strcmp(words[k], "--threads")) found.threads = ekb_set_threads(atoi(words[k + 1]));
    else if (!strcmp(words[k], "--repeat")) found.repeat = atoi(words[k + 1]);
    else stop("is no option: --golden FOLDER, --threads N, --repeat N", words[k]);
  }
  if (found.repeat < 0) stop("must not be negative", "--repeat");
  return found;
}

int main(int count, char **words) {
  signal(SIGILL, no_such_instruction);
  setvbuf(stdout, NULL, _IOLBF, 0);
  options given = parse(count, words);
  int wrong = 0;
  for (int number = 0; number < st_cases; number++) wrong |= run_case(&given, number);
  ekb_release();
  printf("%s on %s: selftest %s\n", st_kernel, st_cpu, wrong ? "FAILED" : "passed");
  return wrong;
}
