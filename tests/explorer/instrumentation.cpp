// Code compiled with -fsanitize=thread calls these functions at each memory access. The explorer implements them in
// place of the thread sanitizer's library: it notes each access to shared memory, and each atomic access is a step.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/explorer/explorer.hpp"

// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming)
namespace waywiser::explorer {
namespace {

// Above, a copy is of a caller's data, and a step.
constexpr std::size_t least_copy = 256;

void note(const void* address, std::size_t bytes, Access access) {
  Course* course = going;
  if (course == nullptr || !course->regions.has(address)) return;
  if (std::string problem = course->note(address, bytes, access); !problem.empty()) course->fail(problem);
}

bool acquires(int order) { return order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE; }
bool releases(int order) { return order >= __ATOMIC_RELEASE; }

// An atomic operation on a word. `changes`: whether the word has another value afterwards.
template <typename Word, typename Operation>
Word atomic(volatile Word* word, int order, bool reads, bool writes, Operation operation) {
  const auto* address = const_cast<const Word*>(word);
  Course* course = going;
  if (course == nullptr || !course->regions.has(address)) return operation();
  course->step();
  note(address, sizeof(Word), writes ? Access::atomic_write : Access::atomic_read);
  if (reads && acquires(order)) course->acquire(address);
  const Word before = *address;
  const Word result = operation();
  if (writes && releases(order))
    course->release(address, reads);
  else if (writes && !reads)
    course->regions.forget_released(address);
  if (*address != before) course->changed();
  return result;
}

template <typename Word>
bool exchange_if(volatile Word* word, Word* expected, Word wanted, int order) {
  return atomic(word, order, true, true, [&] {
           if (*word == *expected) {
             *word = wanted;
             return Word{1};
           }
           *expected = *word;
           return Word{0};
         }) != 0;
}

void note_copy(void* to, const void* from, std::size_t bytes) {
  Course* course = going;
  if (course == nullptr || bytes == 0) return;
  if (!course->regions.has(to) && !course->regions.has(from)) return;
  if (bytes >= least_copy) course->step();
  note(from, bytes, Access::read);
  note(to, bytes, Access::write);
}

}  // namespace
}  // namespace waywiser::explorer

using waywiser::explorer::Access;
using waywiser::explorer::atomic;
using waywiser::explorer::exchange_if;
using waywiser::explorer::note;

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_read_range(void* address, std::size_t bytes) { note(address, bytes, Access::read); }
void __tsan_write_range(void* address, std::size_t bytes) { note(address, bytes, Access::write); }

#define WAYWISER_PLAIN(bytes)                                                    \
  void __tsan_read##bytes(void* address) { note(address, bytes, Access::read); } \
  void __tsan_write##bytes(void* address) { note(address, bytes, Access::write); }
WAYWISER_PLAIN(1)
WAYWISER_PLAIN(2)
WAYWISER_PLAIN(4)
WAYWISER_PLAIN(8)
WAYWISER_PLAIN(16)

#define WAYWISER_MODIFY(bits, Word, what, expression)                             \
  Word __tsan_atomic##bits##_##what(volatile Word* word, Word value, int order) { \
    return atomic(word, order, true, true, [&] {                                  \
      const Word old = *word;                                                     \
      *word = static_cast<Word>(expression);                                      \
      return old;                                                                 \
    });                                                                           \
  }
#define WAYWISER_ATOMIC(bits, Word)                                                                                   \
  Word __tsan_atomic##bits##_load(const volatile Word* word, int order) {                                             \
    return atomic(const_cast<volatile Word*>(word), order, true, false, [&] { return Word{*word}; });                 \
  }                                                                                                                   \
  void __tsan_atomic##bits##_store(volatile Word* word, Word value, int order) {                                      \
    atomic(word, order, false, true, [&] { return *word = value, value; });                                           \
  }                                                                                                                   \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile Word* word, Word* expected, Word wanted, int order,      \
                                                    int) {                                                            \
    return exchange_if(word, expected, wanted, order);                                                                \
  }                                                                                                                   \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile Word* word, Word* expected, Word wanted, int order, int) { \
    return exchange_if(word, expected, wanted, order);                                                                \
  }                                                                                                                   \
  WAYWISER_MODIFY(bits, Word, exchange, value)                                                                        \
  WAYWISER_MODIFY(bits, Word, fetch_add, old + value)                                                                 \
  WAYWISER_MODIFY(bits, Word, fetch_sub, old - value)                                                                 \
  WAYWISER_MODIFY(bits, Word, fetch_and, old& value)                                                                  \
  WAYWISER_MODIFY(bits, Word, fetch_or, old | value)                                                                  \
  WAYWISER_MODIFY(bits, Word, fetch_xor, old ^ value)
WAYWISER_ATOMIC(8, std::uint8_t)
WAYWISER_ATOMIC(16, std::uint16_t)
WAYWISER_ATOMIC(32, std::uint32_t)
WAYWISER_ATOMIC(64, std::uint64_t)

void __tsan_atomic_thread_fence(int) {
  if (auto* course = waywiser::explorer::going) course->fail("fences are not known to the explorer");
}
void __tsan_atomic_signal_fence(int) {}

// The linker redirects calls of memcpy, memmove and memset to these (--wrap).
void* __real_memcpy(void*, const void*, std::size_t);
void* __real_memmove(void*, const void*, std::size_t);
void* __real_memset(void*, int, std::size_t);
void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  waywiser::explorer::note_copy(to, from, bytes);
  return __real_memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
  waywiser::explorer::note_copy(to, from, bytes);
  return __real_memmove(to, from, bytes);
}
void* __wrap_memset(void* to, int value, std::size_t bytes) {
  note(to, bytes, Access::write);
  return __real_memset(to, value, bytes);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)
