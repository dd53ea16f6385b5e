#include "job.hpp"

#include <link.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace waywiser_petsc {
namespace {

constexpr int tags = 32767;

ww_group* the_group = nullptr;
std::array<std::uint64_t, tags / 64 + 1> free_tags = [] {
  std::array<std::uint64_t, tags / 64 + 1> all{};
  all.fill(~std::uint64_t{0});
  all.back() = (std::uint64_t{1} << tags % 64) - 1;
  return all;
}();

int note_libucp(dl_phdr_info* library, std::size_t, void* found) {
  const std::string_view file = library->dlpi_name;
  if (!file.substr(file.rfind('/') + 1).starts_with("libucp")) return 0;
  *static_cast<std::string*>(found) = file;
  return 1;
}

}  // namespace

ww_group* Job::group() { return the_group; }

std::string Job::join() {
  if (the_group != nullptr) return {};
  ww_join_options options{};
  options.size = sizeof options;
  options.progress_thread = 1;  // transfers move while the program waits in MPI
  if (ww_join(&options, &the_group) != WW_OK) return ww_error_text();
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (ww_rank(the_group) == rank && ww_size(the_group) == size) return {};
  return "this is rank " + std::to_string(rank) + " of " + std::to_string(size) + " of MPI, but " +
         std::to_string(ww_rank(the_group)) + " of " + std::to_string(ww_size(the_group)) +
         " of the launcher: start all ranks by one mpirun or srun";
}

PetscErrorCode Job::leave() {
  PetscFunctionBegin;
  ww_group* group = std::exchange(the_group, nullptr);
  if (group != nullptr) {
    WaywiserCall(ww_close(group));
    ww_group_free(group);
  }
  PetscFunctionReturn(PetscErrorCode(0));
}

PetscErrorCode Job::take_tag(MPI_Comm comm, int* tag) {
  PetscFunctionBegin;
  auto of_all = free_tags;
  PetscCallMPI(
      MPI_Allreduce(MPI_IN_PLACE, of_all.data(), static_cast<int>(of_all.size()), MPI_UINT64_T, MPI_BAND, comm));
  std::size_t word = 0;
  while (word < of_all.size() && of_all[word] == 0) ++word;
  PetscCheck(word < of_all.size(), comm, PETSC_ERR_SUP,
             "waywiser: %d star forests exist at once, and there are no more tags; use -sf_type basic", tags);
  const int bit = __builtin_ctzll(of_all[word]);
  free_tags[word] &= ~(std::uint64_t{1} << bit);
  *tag = static_cast<int>(word) * 64 + bit;
  PetscFunctionReturn(PetscErrorCode(0));
}

void Job::give_back_tag(int tag) { free_tags[static_cast<std::size_t>(tag) / 64] |= std::uint64_t{1} << tag % 64; }

std::string libraries_in_use() {
  std::string libucp = "no libucp";
  ::dl_iterate_phdr(note_libucp, &libucp);
  return std::string("Waywiser ") + ww_version() + ", UCX: " + libucp;
}

PetscErrorCode library_failed(int error) {
  PetscFunctionBegin;
  SETERRQ(PETSC_COMM_SELF, error == WW_NO_MEMORY ? PETSC_ERR_MEM : PETSC_ERR_LIB, "waywiser: %s", ww_error_text());
}

}  // namespace waywiser_petsc
