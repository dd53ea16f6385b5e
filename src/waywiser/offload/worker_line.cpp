#include "waywiser/offload/worker_line.hpp"

#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/offload/secret_pair.hpp"

namespace waywiser {
namespace {

constexpr Seconds meeting_patience = 20;  // for the other worker, and for each piece of the array
constexpr int waiting_rank = 0, joining_rank = 1, piece_tag = 1;

class GroupLine final : public WorkerLine {
 public:
  GroupLine(Group group, int other) : group_(std::move(group)), other_(other) {}
  void send(std::span<const std::byte> bytes) override {
    group_.send({{bytes.data(), bytes.size(), host(0)}, DataType::uint8}, other_, piece_tag);
  }
  void receive(std::span<std::byte> bytes) override {
    group_.recv({{bytes.data(), bytes.size(), host(0)}, DataType::uint8}, other_, piece_tag);
  }
  void close() override { group_.close(); }

 private:
  Group group_;
  int other_;
};

class GroupLines final : public WorkerLines {
 public:
  GroupLines(std::string host, LineEncryption encryption, MayJoin may_join)
      : host_(std::move(host)), encryption_(encryption), may_join_(std::move(may_join)) {}
  std::unique_ptr<WorkerLine> wait(const std::string& secret, bool plain,
                                   const std::function<void(const std::string& address)>& announce) override {
    return std::make_unique<GroupLine>(pair_of(secret, plain, {host_, 0}).wait(announce), joining_rank);
  }
  std::unique_ptr<WorkerLine> join(const std::string& secret, bool plain, const std::string& address) override {
    const Endpoint root = parse_endpoint(address);
    if (root.host != host_ && !may_join_(root.host))
      throw Error(ErrorKind::unavailable, "this server connects to no server at " + quoted(root.host, longest_address) +
                                              ": its owner admits others by --peers");
    return std::make_unique<GroupLine>(pair_of(secret, plain, root).join(), waiting_rank);
  }

 private:
  SecretPair pair_of(const std::string& secret, bool plain, Endpoint root) const {
    if (plain && !encryption_.admits_plain)
      throw Error(ErrorKind::unavailable, "this server encrypts arrays: it was started without --data-plain");
    return {"copy", secret, std::move(root), encryption_.encrypt && !plain, meeting_patience};
  }

  std::string host_;
  LineEncryption encryption_;
  MayJoin may_join_;
};

}  // namespace

std::unique_ptr<WorkerLines> open_worker_lines(std::string host, LineEncryption encryption, MayJoin may_join) {
  return std::make_unique<GroupLines>(std::move(host), encryption, std::move(may_join));
}

}  // namespace waywiser
