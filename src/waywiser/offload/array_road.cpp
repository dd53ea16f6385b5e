#include "waywiser/offload/array_road.hpp"

#include <utility>

#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/group/group.hpp"

namespace waywiser {
namespace {

constexpr Seconds meeting_patience = 20;  // for the other worker, and for each piece of the array
constexpr int waiting_rank = 0, joining_rank = 1, piece_tag = 1;
constexpr std::size_t digits_of_job = 16;

class GroupRoad final : public ArrayRoad {
 public:
  GroupRoad(Group group, int other) : group_(std::move(group)), other_(other) {}
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

class GroupRoads final : public ArrayRoads {
 public:
  GroupRoads(std::string host, bool encrypt) : host_(std::move(host)), encrypt_(encrypt) {}
  std::unique_ptr<ArrayRoad> wait(const std::string& secret,
                                  const std::function<void(const std::string& address)>& announce) override {
    JoinOptions options = options_of(secret, waiting_rank, {host_, 0});
    options.announce = [&](const Endpoint& root) { announce(text(root)); };
    return std::make_unique<GroupRoad>(Group::join(options), joining_rank);
  }
  std::unique_ptr<ArrayRoad> join(const std::string& secret, const std::string& address) override {
    return std::make_unique<GroupRoad>(Group::join(options_of(secret, joining_rank, parse_endpoint(address))),
                                       waiting_rank);
  }

 private:
  // The first digits name the job, the others are the secret.
  JoinOptions options_of(const std::string& secret, int rank, Endpoint root) const {
    JoinOptions options = usual_options();
    options.launch = Launch{"remote GPU",
                            rank,
                            2,
                            "remote-copy-" + secret.substr(0, digits_of_job),
                            std::move(root),
                            Secret(secret.substr(digits_of_job))};
    options.timeout = meeting_patience;
    options.encrypt = encrypt_;
    return options;
  }

  std::string host_;
  bool encrypt_;
};

}  // namespace

std::unique_ptr<ArrayRoads> open_array_roads(std::string host, bool encrypt) {
  return std::make_unique<GroupRoads>(std::move(host), encrypt);
}

}  // namespace waywiser
