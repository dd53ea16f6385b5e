#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/comm/introduction.hpp"
#include "waywiser/transport/ucx/ucx_worker.hpp"

namespace waywiser {

// One message on its way, or its result. Kept by whoever started it until test() says that it is complete.
struct Message {
  UcxRequest request = nullptr;  // nullptr: complete
  bool receiving = false;
  std::uint32_t peer = 0;
  ucp_tag_recv_info_t info{};  // of a receive, when complete
};

// UCX between this rank and all others, endpoints made when they are needed. Used by one thread; nothing moves unless
// it calls progress().
class Engine {
 public:
  explicit Engine(std::size_t ranks);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  // Without close() nothing is waited for; while connections to other machines are open, UCX is left as it is.
  ~Engine();

  std::vector<std::byte> address() const;
  // Who the others are; `me` among them.
  void introduce(const std::vector<Introduction>& ranks, std::uint32_t me);

  unsigned progress() { return functions_.worker_progress(worker_); }
  void send(std::uint32_t peer, ucp_tag_t tag, const void* data, std::size_t bytes, Message& message);
  void receive(ucp_tag_t tag, ucp_tag_t mask, void* data, std::size_t bytes, Message& message);
  // True: complete. A receive of a longer message throws invalid_input; everything else that goes wrong io, naming the
  // peer.
  bool test(Message& message) { return message.request == nullptr || test_request(message); }
  // For messages that are given up.
  void cancel(Message& message) noexcept;

  ucp_worker_h worker() const noexcept { return worker_; }
  ucp_context_h context() const noexcept { return context_.get(); }
  ucp_ep_h endpoint(std::uint32_t peer);
  // Called with what UCX could not do, before it is thrown: somebody may know why.
  void set_explainer(std::function<void(const std::string&)> explainer) { explainer_ = std::move(explainer); }
  // A connection that broke by itself: its peer; nothing while all is well.
  std::optional<std::string> broken() const;
  // Lets what was sent arrive, then ends the connections.
  void close(Deadline deadline) noexcept;

 private:
  struct Peer {
    Engine* engine = nullptr;
    std::uint32_t rank = 0;
    bool same_machine = true;
    std::vector<std::byte> address;
    ucp_ep_h endpoint = nullptr;
    ucs_status_t problem = UCS_OK;
  };

  bool may_be_destroyed() const;
  bool test_request(Message& message);
  void check(ucs_status_t status, const std::string& what) const;
  void connect(Peer& peer);
  static void on_error(void* peer, ucp_ep_h endpoint, ucs_status_t status);

  const UcxFunctions& functions_;
  UcxContext context_;
  ucp_worker_h worker_ = nullptr;
  std::vector<Peer> peers_;
  const Peer* broken_ = nullptr;
  bool unclosed_ = false;
  std::function<void(const std::string&)> explainer_;
};

}  // namespace waywiser
