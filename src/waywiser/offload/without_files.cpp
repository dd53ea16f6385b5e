#include "waywiser/offload/without_files.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <future>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t architecture = 0;  // of no kernel
#endif

// What a compiler in memory needs. A new thread inherits the filter.
constexpr std::array allowed{
    __NR_brk,
    __NR_mmap,
    __NR_munmap,
    __NR_mprotect,
    __NR_mremap,
    __NR_madvise,
    __NR_futex,
    __NR_sched_yield,
    __NR_sched_getaffinity,
    __NR_clock_gettime,
    __NR_clock_nanosleep,
    __NR_nanosleep,
    __NR_gettimeofday,
    __NR_times,
    __NR_getrusage,
    __NR_getpid,
    __NR_gettid,
    __NR_rt_sigaction,
    __NR_rt_sigprocmask,
    __NR_rt_sigreturn,
    __NR_sigaltstack,
    __NR_tgkill,
    __NR_exit,
    __NR_exit_group,
    __NR_restart_syscall,
    __NR_write,
    __NR_close,
    __NR_getrandom,
    __NR_set_robust_list,
    __NR_clone,
    __NR_sysinfo,
    __NR_uname,
    __NR_prlimit64,
#ifdef __NR_clone3
    __NR_clone3,
#endif
};

std::vector<sock_filter> filter() {
  const auto jump = [](std::uint32_t value, std::uint8_t if_equal, std::uint8_t otherwise) -> sock_filter {
    return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, if_equal, otherwise);
  };
  const auto answer = [](std::uint32_t value) -> sock_filter { return BPF_STMT(BPF_RET | BPF_K, value); };
  const std::uint32_t refusal = SECCOMP_RET_ERRNO | ENOENT;
  std::vector<sock_filter> rules{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
                                 jump(architecture, 1, 0), answer(refusal),
                                 BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const auto number : allowed) {
    rules.push_back(jump(static_cast<std::uint32_t>(number), 0, 1));
    rules.push_back(answer(SECCOMP_RET_ALLOW));
  }
  rules.push_back(answer(refusal));
  return rules;
}

void give_up_files() {
  std::vector<sock_filter> rules = filter();
  const sock_fprog program{static_cast<unsigned short>(rules.size()), rules.data()};
  if (architecture == 0 || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    throw Error(ErrorKind::unavailable, "this kernel does not keep a thread from files (seccomp)");
}

}  // namespace

void run_without_files(std::function<void()> work, Deadline deadline) {
  std::packaged_task<void()> task([work = std::move(work)] {
    give_up_files();
    work();
  });
  std::future<void> ended = task.get_future();
  try {
    std::thread(std::move(task)).detach();
  } catch (const std::system_error&) {
    throw Error(ErrorKind::unavailable, "the system starts no thread");
  }
  if (ended.wait_until(deadline.at()) != std::future_status::ready)
    throw Error(ErrorKind::timeout, "it does not end in time");
  ended.get();
}

}  // namespace waywiser
