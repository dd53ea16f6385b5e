#pragma once

#include "waywiser/heap/nvshmem/here.cuh"

// Puts, gets, signals, and what orders them. Those of the host are complete when they return.

enum : int { NVSHMEM_SIGNAL_SET, NVSHMEM_SIGNAL_ADD };

namespace waywiser::nvshmem {

template <Scope scope, typename T>
WAYWISER_NVSHMEM_BOTH void put_here(T* destination, const T* source, std::size_t count, int pe) {
#if defined(__CUDA_ARCH__)
  with_ranks([&](const NvshmemRanks& ranks) { ranks.template put<scope>(destination, source, count, pe); });
#else
  put(destination, source, count * sizeof(T), pe, On());
#endif
}
template <Scope scope, typename T>
WAYWISER_NVSHMEM_BOTH void get_here(T* destination, const T* source, std::size_t count, int pe) {
#if defined(__CUDA_ARCH__)
  with_ranks([&](const NvshmemRanks& ranks) { ranks.template get<scope>(destination, source, count, pe); });
#else
  get(destination, source, count * sizeof(T), pe, On());
#endif
}
template <Scope scope, typename T>
WAYWISER_NVSHMEM_BOTH void get_nbi_here(T* destination, const T* source, std::size_t count, int pe) {
#if defined(__CUDA_ARCH__)
  with_ranks([&](const NvshmemRanks& ranks) { ranks.template get_nbi<scope>(destination, source, count, pe); });
#else
  get(destination, source, count * sizeof(T), pe, On());
#endif
}
template <typename T>
WAYWISER_NVSHMEM_BOTH void p_here(T* destination, T value, int pe) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) == 4 || sizeof(T) == 8)
    with_ranks([&](const NvshmemRanks& ranks) { ranks.p(destination, value, pe); });
  else
    put_here<Scope::thread>(destination, &value, 1, pe);
#else
  put(destination, &value, sizeof value, pe, On());
#endif
}
template <typename T>
WAYWISER_NVSHMEM_BOTH T g_here(const T* source, int pe) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) == 4 || sizeof(T) == 8) {
    return with_ranks([&](const NvshmemRanks& ranks) { return ranks.g(source, pe); });
  } else {
    T value;
    get_here<Scope::thread>(&value, source, 1, pe);
    return value;
  }
#else
  T value;
  get(&value, source, sizeof value, pe, On());
  return value;
#endif
}
template <Scope scope, typename T>
WAYWISER_NVSHMEM_BOTH void put_signal_here(T* destination, const T* source, std::size_t count, std::uint64_t* word,
                                           std::uint64_t value, int op, int pe) {
#if defined(__CUDA_ARCH__)
  const auto how = op == NVSHMEM_SIGNAL_SET ? one_sided::SignalOp::set : one_sided::SignalOp::add;
  with_ranks([&](const NvshmemRanks& ranks) {
    ranks.template put_with_signal<scope>(destination, source, count, word, value, how, pe);
  });
#else
  put(destination, source, count * sizeof(T), pe, On());
  signal(word, value, op, pe, On());
#endif
}
template <typename T>
WAYWISER_NVSHMEM_HOST void put_signal_on(T* destination, const T* source, std::size_t count, std::uint64_t* word,
                                         std::uint64_t value, int op, int pe, cudaStream_t stream) {
  put(destination, source, count * sizeof(T), pe, on(stream));
  signal(word, value, op, pe, on(stream));
}

#if defined(__CUDACC__)
template <Scope scope, typename T>
WAYWISER_NVSHMEM_DEVICE void iput_here(T* destination, const T* source, std::ptrdiff_t apart,
                                       std::ptrdiff_t source_apart, std::size_t count, int pe) {
  with_ranks([&](const NvshmemRanks& ranks) {
    ranks.template iput<scope>(destination, source, static_cast<std::uint64_t>(apart),
                               static_cast<std::uint64_t>(source_apart), count, pe);
  });
}
template <Scope scope, typename T>
WAYWISER_NVSHMEM_DEVICE void iget_here(T* destination, const T* source, std::ptrdiff_t apart,
                                       std::ptrdiff_t source_apart, std::size_t count, int pe) {
  with_ranks([&](const NvshmemRanks& ranks) {
    ranks.template iget<scope>(destination, source, static_cast<std::uint64_t>(apart),
                               static_cast<std::uint64_t>(source_apart), count, pe);
  });
}
#endif

}  // namespace waywiser::nvshmem

// FIRST and LAST: the name around what is done ("float_" and "", "" and "mem", "" and "32"); TYPE: of the arguments;
// ELEMENT: what is counted.
#define WAYWISER_NVSHMEM_TRANSFERS(FIRST, LAST, TYPE, ELEMENT)                                                        \
  WAYWISER_NVSHMEM_BOTH void nvshmem_##FIRST##put##LAST(TYPE* dest, const TYPE* source, std::size_t nelems, int pe) { \
    using namespace waywiser::nvshmem;                                                                                \
    put_here<Scope::thread>(static_cast<ELEMENT*>(dest), static_cast<const ELEMENT*>(source), nelems, pe);            \
  }                                                                                                                   \
  WAYWISER_NVSHMEM_BOTH void nvshmem_##FIRST##get##LAST(TYPE* dest, const TYPE* source, std::size_t nelems, int pe) { \
    using namespace waywiser::nvshmem;                                                                                \
    get_here<Scope::thread>(static_cast<ELEMENT*>(dest), static_cast<const ELEMENT*>(source), nelems, pe);            \
  }                                                                                                                   \
  WAYWISER_NVSHMEM_BOTH void nvshmem_##FIRST##put##LAST##_nbi(TYPE* dest, const TYPE* source, std::size_t nelems,     \
                                                              int pe) {                                               \
    using namespace waywiser::nvshmem;                                                                                \
    put_here<Scope::thread>(static_cast<ELEMENT*>(dest), static_cast<const ELEMENT*>(source), nelems, pe);            \
  }                                                                                                                   \
  WAYWISER_NVSHMEM_BOTH void nvshmem_##FIRST##get##LAST##_nbi(TYPE* dest, const TYPE* source, std::size_t nelems,     \
                                                              int pe) {                                               \
    using namespace waywiser::nvshmem;                                                                                \
    get_nbi_here<Scope::thread>(static_cast<ELEMENT*>(dest), static_cast<const ELEMENT*>(source), nelems, pe);        \
  }                                                                                                                   \
  WAYWISER_NVSHMEM_ON_STREAM(FIRST, LAST, TYPE, ELEMENT, put, put)                                                    \
  WAYWISER_NVSHMEM_ON_STREAM(FIRST, LAST##_nbi, TYPE, ELEMENT, put, put)                                              \
  WAYWISER_NVSHMEM_ON_STREAM(FIRST, LAST, TYPE, ELEMENT, get, get)                                                    \
  WAYWISER_NVSHMEM_ON_STREAM(FIRST, LAST##_nbi, TYPE, ELEMENT, get, get)                                              \
  WAYWISER_NVSHMEM_PUT_SIGNAL(FIRST, LAST##_signal, TYPE, ELEMENT)                                                    \
  WAYWISER_NVSHMEM_PUT_SIGNAL(FIRST, LAST##_signal_nbi, TYPE, ELEMENT)                                                \
  WAYWISER_NVSHMEM_SCOPED(FIRST, LAST, TYPE, ELEMENT, warp)                                                           \
  WAYWISER_NVSHMEM_SCOPED(FIRST, LAST, TYPE, ELEMENT, block)
#define WAYWISER_NVSHMEM_ON_STREAM(FIRST, LAST, TYPE, ELEMENT, VERB, CALL)                              \
  WAYWISER_NVSHMEM_HOST void nvshmemx_##FIRST##VERB##LAST##_on_stream(                                  \
      TYPE* dest, const TYPE* source, std::size_t nelems, int pe, cudaStream_t stream) {                \
    waywiser::nvshmem::CALL(dest, source, nelems * sizeof(ELEMENT), pe, waywiser::nvshmem::on(stream)); \
  }
#define WAYWISER_NVSHMEM_PUT_SIGNAL(FIRST, LAST, TYPE, ELEMENT)                                                        \
  WAYWISER_NVSHMEM_BOTH void nvshmem_##FIRST##put##LAST(TYPE* dest, const TYPE* source, std::size_t nelems,            \
                                                        std::uint64_t* sig_addr, std::uint64_t signal, int sig_op,     \
                                                        int pe) {                                                      \
    using namespace waywiser::nvshmem;                                                                                 \
    put_signal_here<Scope::thread>(static_cast<ELEMENT*>(dest), static_cast<const ELEMENT*>(source), nelems, sig_addr, \
                                   signal, sig_op, pe);                                                                \
  }                                                                                                                    \
  WAYWISER_NVSHMEM_HOST void nvshmemx_##FIRST##put##LAST##_on_stream(                                                  \
      TYPE* dest, const TYPE* source, std::size_t nelems, std::uint64_t* sig_addr, std::uint64_t signal, int sig_op,   \
      int pe, cudaStream_t stream) {                                                                                   \
    using namespace waywiser::nvshmem;                                                                                 \
    put_signal_on(static_cast<ELEMENT*>(dest), static_cast<const ELEMENT*>(source), nelems, sig_addr, signal, sig_op,  \
                  pe, stream);                                                                                         \
  }
#if defined(__CUDACC__)
#define WAYWISER_NVSHMEM_SCOPED_COPY(NAME, TYPE, ELEMENT, CALL, SCOPE)                                \
  WAYWISER_NVSHMEM_DEVICE void NAME(TYPE* dest, const TYPE* source, std::size_t nelems, int pe) {     \
    using namespace waywiser::nvshmem;                                                                \
    CALL<Scope::SCOPE>(static_cast<ELEMENT*>(dest), static_cast<const ELEMENT*>(source), nelems, pe); \
  }
#define WAYWISER_NVSHMEM_SCOPED_SIGNAL(NAME, TYPE, ELEMENT, SCOPE)                                                    \
  WAYWISER_NVSHMEM_DEVICE void NAME(TYPE* dest, const TYPE* source, std::size_t nelems, std::uint64_t* sig_addr,      \
                                    std::uint64_t signal, int sig_op, int pe) {                                       \
    using namespace waywiser::nvshmem;                                                                                \
    put_signal_here<Scope::SCOPE>(static_cast<ELEMENT*>(dest), static_cast<const ELEMENT*>(source), nelems, sig_addr, \
                                  signal, sig_op, pe);                                                                \
  }
#define WAYWISER_NVSHMEM_SCOPED(FIRST, LAST, TYPE, ELEMENT, SCOPE)                                            \
  WAYWISER_NVSHMEM_SCOPED_COPY(nvshmemx_##FIRST##put##LAST##_##SCOPE, TYPE, ELEMENT, put_here, SCOPE)         \
  WAYWISER_NVSHMEM_SCOPED_COPY(nvshmemx_##FIRST##put##LAST##_nbi_##SCOPE, TYPE, ELEMENT, put_here, SCOPE)     \
  WAYWISER_NVSHMEM_SCOPED_COPY(nvshmemx_##FIRST##get##LAST##_##SCOPE, TYPE, ELEMENT, get_here, SCOPE)         \
  WAYWISER_NVSHMEM_SCOPED_COPY(nvshmemx_##FIRST##get##LAST##_nbi_##SCOPE, TYPE, ELEMENT, get_nbi_here, SCOPE) \
  WAYWISER_NVSHMEM_SCOPED_SIGNAL(nvshmemx_##FIRST##put##LAST##_signal_##SCOPE, TYPE, ELEMENT, SCOPE)          \
  WAYWISER_NVSHMEM_SCOPED_SIGNAL(nvshmemx_##FIRST##put##LAST##_signal_nbi_##SCOPE, TYPE, ELEMENT, SCOPE)
#define WAYWISER_NVSHMEM_STRIDED_CALL(NAME, TYPE, ELEMENT, CALL, SCOPE)                                         \
  WAYWISER_NVSHMEM_DEVICE void NAME(TYPE* dest, const TYPE* source, std::ptrdiff_t dst, std::ptrdiff_t sst,     \
                                    std::size_t nelems, int pe) {                                               \
    using namespace waywiser::nvshmem;                                                                          \
    CALL<Scope::SCOPE>(static_cast<ELEMENT*>(dest), static_cast<const ELEMENT*>(source), dst, sst, nelems, pe); \
  }
#define WAYWISER_NVSHMEM_STRIDED(FIRST, LAST, TYPE, ELEMENT)                                           \
  WAYWISER_NVSHMEM_STRIDED_CALL(nvshmem_##FIRST##iput##LAST, TYPE, ELEMENT, iput_here, thread)         \
  WAYWISER_NVSHMEM_STRIDED_CALL(nvshmemx_##FIRST##iput##LAST##_warp, TYPE, ELEMENT, iput_here, warp)   \
  WAYWISER_NVSHMEM_STRIDED_CALL(nvshmemx_##FIRST##iput##LAST##_block, TYPE, ELEMENT, iput_here, block) \
  WAYWISER_NVSHMEM_STRIDED_CALL(nvshmem_##FIRST##iget##LAST, TYPE, ELEMENT, iget_here, thread)         \
  WAYWISER_NVSHMEM_STRIDED_CALL(nvshmemx_##FIRST##iget##LAST##_warp, TYPE, ELEMENT, iget_here, warp)   \
  WAYWISER_NVSHMEM_STRIDED_CALL(nvshmemx_##FIRST##iget##LAST##_block, TYPE, ELEMENT, iget_here, block)
#else
#define WAYWISER_NVSHMEM_SCOPED(FIRST, LAST, TYPE, ELEMENT, SCOPE)
#define WAYWISER_NVSHMEM_STRIDED(FIRST, LAST, TYPE, ELEMENT)
#endif

#define WAYWISER_NVSHMEM_TYPED(NAME, TYPE)                                              \
  WAYWISER_NVSHMEM_TRANSFERS(NAME##_, , TYPE, TYPE)                                     \
  WAYWISER_NVSHMEM_STRIDED(NAME##_, , TYPE, TYPE)                                       \
  WAYWISER_NVSHMEM_BOTH void nvshmem_##NAME##_p(TYPE* dest, const TYPE value, int pe) { \
    waywiser::nvshmem::p_here<TYPE>(dest, value, pe);                                   \
  }                                                                                     \
  WAYWISER_NVSHMEM_BOTH TYPE nvshmem_##NAME##_g(const TYPE* source, int pe) {           \
    return waywiser::nvshmem::g_here<TYPE>(source, pe);                                 \
  }
#define WAYWISER_NVSHMEM_SIZED(BITS, TYPE)       \
  WAYWISER_NVSHMEM_TRANSFERS(, BITS, void, TYPE) \
  WAYWISER_NVSHMEM_STRIDED(, BITS, void, TYPE)

WAYWISER_NVSHMEM_TYPES(WAYWISER_NVSHMEM_TYPED)
WAYWISER_NVSHMEM_SIZES(WAYWISER_NVSHMEM_SIZED)
WAYWISER_NVSHMEM_TRANSFERS(, mem, void, std::byte)

WAYWISER_NVSHMEM_BOTH void nvshmemx_signal_op(std::uint64_t* sig_addr, std::uint64_t signal, int sig_op, int pe) {
#if defined(__CUDA_ARCH__)
  waywiser::nvshmem::with_ranks([&](const waywiser::nvshmem::NvshmemRanks& ranks) {
    if (sig_op == NVSHMEM_SIGNAL_SET)
      ranks.signal_set(sig_addr, signal, pe);
    else
      ranks.signal_add(sig_addr, signal, pe);
  });
#else
  waywiser::nvshmem::signal(sig_addr, signal, sig_op, pe, {});
#endif
}
WAYWISER_NVSHMEM_HOST void nvshmemx_signal_op_on_stream(std::uint64_t* sig_addr, std::uint64_t signal, int sig_op,
                                                        int pe, cudaStream_t stream) {
  waywiser::nvshmem::signal(sig_addr, signal, sig_op, pe, waywiser::nvshmem::on(stream));
}

// On the host all earlier calls are complete; on a stream they are when it has come so far.
WAYWISER_NVSHMEM_BOTH void nvshmem_fence() {
#if defined(__CUDA_ARCH__)
  waywiser::nvshmem::with_ranks([](const waywiser::nvshmem::NvshmemRanks& ranks) { ranks.fence(); });
#endif
}
WAYWISER_NVSHMEM_BOTH void nvshmem_quiet() {
#if defined(__CUDA_ARCH__)
  waywiser::nvshmem::with_ranks([](const waywiser::nvshmem::NvshmemRanks& ranks) { ranks.quiet(); });
#endif
}
WAYWISER_NVSHMEM_HOST void nvshmemx_quiet_on_stream(cudaStream_t /*stream*/) {}
