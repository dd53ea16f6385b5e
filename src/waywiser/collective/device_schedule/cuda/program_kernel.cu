#include "waywiser/collective/device_schedule/program_body.hpp"
#include "waywiser/collective/device_schedule/program_kernel.hpp"
#include "waywiser/device/cuda/kernel_launch.hpp"
#include "waywiser/kernels/block/cuda_block.cuh"

namespace waywiser::program {
namespace {

constexpr unsigned program_threads = 512;

template <typename T>
__device__ void keep(T* kept, const T* values, unsigned count) {
  using Word = Vector<std::uint32_t, 1>;
  static_assert(sizeof(T) % sizeof(Word) == 0);
  for (unsigned i = threadIdx.x; i < count * sizeof(T) / sizeof(Word); i += blockDim.x)
    reinterpret_cast<Word*>(kept)[i] = reinterpret_cast<const Word*>(values)[i];
}

// A short program is read into shared memory while an earlier kernel may still run, which does not change it.
template <typename Block, typename Form>
__global__ void __launch_bounds__(program_threads) program_kernel(const __grid_constant__ ProgramArguments terms) {
  __shared__ alignas(16) std::byte kept_instructions[most_kept * sizeof(Instruction)];
  __shared__ std::uint32_t kept_rounds[most_kept + 1];
  const bool keeps = terms.instruction_count <= most_kept && terms.round_count <= most_kept;
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
  if (keeps) {
    keep(reinterpret_cast<Instruction*>(kept_instructions), terms.instructions, terms.instruction_count);
    keep(kept_rounds, terms.rounds, terms.round_count + 1);
    __syncthreads();
  }
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  if (block::is_over<Block>(terms.failed)) return;
  Block block;
  ProgramBody<Block, Form>(block, terms,
                           keeps ? reinterpret_cast<const Instruction*>(kept_instructions) : terms.instructions,
                           keeps ? kept_rounds : terms.rounds)
      .run();
}

}  // namespace

std::function<void(void*)> cuda_launcher(LaunchCache* cache, const ProgramArguments& terms, bool overlaps) {
  return [=](void* stream) {
    with_form(terms.form, [&]<typename Form>() {
      const auto kernel =
          terms.failed != nullptr ? program_kernel<block::LeavingBlock, Form> : program_kernel<block::CudaBlock, Form>;
      launch_kernel(cache, kernel, terms.blocks, program_threads, overlaps, stream, "launch of a schedule on a GPU",
                    terms);
    });
  };
}

}  // namespace waywiser::program
