#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

namespace waywiser {

// First come, first served.
class FairLock {
 public:
  void lock() noexcept {
    const std::uint32_t mine = next_.fetch_add(1);
    for (std::uint32_t now = served_; now != mine; now = served_) served_.wait(now);
  }
  bool try_lock() noexcept {
    std::uint32_t now = served_;
    return next_.compare_exchange_strong(now, now + 1);
  }
  void unlock() noexcept {
    served_.fetch_add(1);
    served_.notify_all();
  }
  // Whether others wait for the caller, who holds it.
  bool is_wanted() const noexcept {
    return next_.load(std::memory_order_relaxed) - served_.load(std::memory_order_relaxed) > 1;
  }

 private:
  std::atomic<std::uint32_t> next_{0}, served_{0};  // tickets
};

// Which thread is in a call of a rank. A call keeps all other threads of the program out, unless they share the rank:
// then a call that waits gives way to them. A progress thread, if there is one, has its turns between the calls.
// Until another thread comes, the one that made the lock takes it by plain stores: an atomic exchange would wait until
// the message before has left the store buffer. The thread that comes makes the barrier for both, once (membarrier).
class CallLock {
 public:
  explicit CallLock(bool shared) noexcept;
  CallLock(const CallLock&) = delete;
  CallLock& operator=(const CallLock&) = delete;

  // Calls nest. False: another thread is in a call. If threads share the rank, waits for a turn.
  [[nodiscard]] bool lock() noexcept {
    if (!is_mine()) {
      if (is_thread()) return true;
      if (!enter()) [[unlikely]]
        return false;
    }
    ++depth_;
    return true;
  }
  void unlock() noexcept {
    const bool has_turn = has_turns_;
    if (has_turn && is_thread()) [[unlikely]]
      return;
    if (--depth_ != 0) return;
    if (out_ == 0) [[likely]]
      leave();
    if (has_turn) [[unlikely]]
      turns_.unlock();
  }
  // For destructors, which cannot refuse: waits until another thread's call is over, or rests.
  void lock_when_free() noexcept;
  // Keeps other threads of the program out between calls. Nests. Not where they share the rank.
  [[nodiscard]] bool hold() noexcept;
  void let_go() noexcept;

  bool is_shared() const noexcept { return shared_; }
  bool is_mine() const noexcept { return is_owner() && depth_ != 0; }
  // Whether another thread of the program waits for a turn. The caller holds the lock.
  bool is_wanted() const noexcept { return shared_ && turns_.is_wanted(); }
  // From now on a progress thread has turns. The caller holds the lock, or nobody does.
  void add_thread() noexcept;
  // A turn of a thread that is not the program's: the lock is its own meanwhile. False: a call is under way.
  [[nodiscard]] bool try_turn_of_thread() noexcept;
  void end_turn_of_thread() noexcept;

  // What a call has left, which comes back to it.
  struct Left {
    int depth = 0, out = 0;
    std::uintptr_t holder = 0;
    bool rests = false;
  };
  // The others may have turns meanwhile. rest(): so may destructors in threads that are kept out.
  Left step_out() noexcept;
  Left rest() noexcept;
  void come_back(const Left& left) noexcept;
  // In the child of a fork, which has one thread.
  void forked() noexcept;

 private:
  static constexpr std::uintptr_t brief = 1;  // beside the owner: it is in a destructor, for which others wait
  // One instruction; pthread_self(), which gives the same, is a call.
  static std::uintptr_t me() noexcept { return std::bit_cast<std::uintptr_t>(__builtin_thread_pointer()); }
  bool is_inside() const noexcept { return maker_ == me() && inside_.load(std::memory_order_relaxed); }
  bool is_owner() const noexcept { return is_inside() || (owner_.load(std::memory_order_relaxed) & ~brief) == me(); }
  bool is_thread() const noexcept { return thread_.load(std::memory_order_relaxed) == me(); }
  // By the maker, while it is alone.
  bool step_in() noexcept {
    if (maker_ != me() || !alone_.load(std::memory_order_relaxed)) return false;
    inside_.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // see end_alone()
    if (alone_.load(std::memory_order_relaxed)) [[likely]]
      return true;
    inside_.store(false, std::memory_order_release);
    return false;
  }
  // False: `other` has it.
  bool take(std::uintptr_t& other, std::uintptr_t mark = 0) noexcept {
    other = 0;
    if (!owner_.compare_exchange_strong(other, me() | mark, std::memory_order_acquire, std::memory_order_relaxed))
      return false;
    if (maker_ == me()) return true;
    if (!is_known_.load(std::memory_order_acquire)) [[unlikely]]
      end_alone();
    if (!inside_.load(std::memory_order_acquire)) [[likely]]
      return true;
    owner_.store(0, std::memory_order_release);
    other = maker_;
    return false;
  }
  void leave() noexcept {
    if (is_inside())
      inside_.store(false, std::memory_order_release);
    else
      owner_.store(0, std::memory_order_release);
  }
  bool enter() noexcept {
    if (shared_) [[unlikely]] {
      take_turn();
      return true;
    }
    std::uintptr_t other = 0;
    if (!is_owner() && !step_in() && !take(other) && !wait_for(other)) [[unlikely]]
      return false;
    if (holder_ != 0 && holder_ != me()) [[unlikely]] {
      leave();
      return false;
    }
    if (has_turns_) [[unlikely]]
      turns_.lock();
    return true;
  }
  void take_turn() noexcept;
  void end_alone() noexcept;
  // False: the other thread is in a call.
  bool wait_for(std::uintptr_t other) noexcept;
  void take_when_free(std::uintptr_t mark = 0) noexcept;

  std::uintptr_t maker_ = me();            // a thread
  std::atomic<bool> alone_;                // no other thread has come yet
  std::atomic<bool> is_known_{false};      // the maker knows that it is not alone
  std::atomic<bool> inside_{false};        // the maker is, and came in while it was alone
  std::atomic<std::uintptr_t> owner_{0};   // a thread; 0: none, or the maker is inside
  std::atomic<std::uintptr_t> holder_{0};  // a thread that keeps others out while it is not the owner
  std::atomic<std::uintptr_t> thread_{0};  // that has its turn, and is not the program's
  bool shared_, has_turns_;
  int depth_ = 0;  // of the owner's calls
  int out_ = 0;    // how often the owner has stepped out
  int holds_ = 0;
  FairLock turns_;
};

// In destructors.
class WhenFree {
 public:
  explicit WhenFree(CallLock& lock) noexcept : lock_(lock) { lock_.lock_when_free(); }
  WhenFree(const WhenFree&) = delete;
  WhenFree& operator=(const WhenFree&) = delete;
  ~WhenFree() { lock_.unlock(); }

 private:
  CallLock& lock_;
};

// Holds what has hold() and let_go(), around calls that belong together.
template <typename Lock>
class Hold {
 public:
  explicit Hold(Lock& lock) : lock_(lock) { lock_.hold(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() { lock_.let_go(); }

 private:
  Lock& lock_;
};

}  // namespace waywiser
