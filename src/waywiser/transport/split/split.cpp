#include "waywiser/transport/split/split.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::size_t most_ways = 8;
constexpr Bytes granule = 4096;

std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('+', begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

class Split : public Transport {
 public:
  Split(const Path& path, const TransportContext& context) {
    for (const Path& way : split_ways(path)) {
      const Place place = find_mechanism(way.mechanism)->works_on(way);
      const bool first = ways_.empty();
      if (first) started_ = context.platform.create_event(place);
      ways_.push_back({open_transport(way, context), first ? nullptr : context.platform.open_stream(place),
                       first ? nullptr : context.platform.create_event(place)});
    }
    percents_ = split_percents(path, ways_.size());
  }

  void put(Region destination, ConstRegion source, Stream& stream) override {
    check_put(destination, source);
    const std::vector<Bytes> shares = split_bytes(percents_, source.bytes);
    stream.record(*started_);
    Bytes at = shares[0];
    for (std::size_t i = 1; i < ways_.size(); at += shares[i++]) {
      if (shares[i] == 0) continue;
      ways_[i].stream->wait(*started_);
      ways_[i].transport->put(destination.slice(at, shares[i]), source.slice(at, shares[i]), *ways_[i].stream);
      ways_[i].stream->record(*ways_[i].ended);
    }
    ways_[0].transport->put(destination.slice(0, shares[0]), source.slice(0, shares[0]), stream);
    for (std::size_t i = 1; i < ways_.size(); ++i)
      if (shares[i] != 0) stream.wait(*ways_[i].ended);
  }

  void signal(Region flag, std::uint64_t value, Stream& stream) override {
    ways_[0].transport->signal(flag, value, stream);
  }

 private:
  struct Way {
    std::unique_ptr<Transport> transport;
    std::unique_ptr<Stream> stream;  // none for the first way, which uses the caller's; nor an event
    std::unique_ptr<Event> ended;
  };
  std::vector<Way> ways_;
  std::vector<int> percents_;
  std::unique_ptr<Event> started_;
};

Place works_on(const Path& path) {
  const Path first = split_ways(path).front();
  return find_mechanism(first.mechanism)->works_on(first);
}

std::optional<std::string> why_not(const Path& path, const TransportContext& context) {
  const std::vector<Path> ways = split_ways(path);
  split_percents(path, ways.size());
  for (const Path& way : ways) {
    const Mechanism& mechanism = *find_mechanism(way.mechanism);
    if (auto why = mechanism.why_unavailable(way, context)) return way.mechanism + ": " + *why;
    if (!mechanism.works_on(way).is_gpu())
      return way.mechanism + " works on the host: it cannot run beside another way";
  }
  return {};
}

std::unique_ptr<Transport> open(const Path& path, const TransportContext& context) {
  return std::make_unique<Split>(path, context);
}

PathSteps steps(const Path& path, Bytes bytes) {
  const std::vector<Path> ways = split_ways(path);
  const std::vector<Bytes> shares = split_bytes(split_percents(path, ways.size()), bytes);
  PathSteps found;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    if (shares[i] == 0) continue;
    for (PathStep& step : find_mechanism(ways[i].mechanism)->steps(ways[i], shares[i])) {
      step.who = "part " + std::to_string(i + 1) + ": " + step.who;
      found.push_back(std::move(step));
    }
  }
  return found;
}

}  // namespace

Mechanism split_mechanism() {
  return {"split", "Two or more paths at once, each with its share of the bytes.", why_not, works_on, open, steps};
}

std::vector<Path> split_ways(const Path& path) {
  std::vector<Path> ways;
  for (const std::string& name : parts_of(path.parameter("ways"))) {
    const Mechanism* mechanism = find_mechanism(name);
    if (mechanism == nullptr || name == "split" || name == "ucx" || ways.size() == most_ways)
      throw Error(ErrorKind::invalid_input, label(path) +
                                                ": parameter 'ways' must name up to 8 one-sided mechanisms, "
                                                "such as copy_engine+relay");
    Path way{name, path.source, path.destination, path.processes, {}};
    const std::string prefix = std::to_string(ways.size() + 1) + ".";
    for (const auto& [key, value] : path.parameters)
      if (key.starts_with(prefix)) way.parameters[key.substr(prefix.size())] = value;
    if (path.has("handle")) way.parameters["handle"] = path.parameter("handle");
    ways.push_back(std::move(way));
  }
  if (ways.size() < 2)
    throw Error(ErrorKind::invalid_input, label(path) + ": parameter 'ways' must name at least two mechanisms");
  return ways;
}

std::vector<Bytes> split_bytes(const std::vector<int>& percents, Bytes bytes) {
  std::vector<Bytes> shares;
  Bytes given = 0;
  for (const int percent : percents) {
    shares.push_back(bytes / 100 * static_cast<Bytes>(percent) / granule * granule);
    given += shares.back();
  }
  shares.front() += bytes - given;
  return shares;
}

std::vector<int> split_percents(const Path& path, std::size_t ways) {
  std::vector<int> percents;
  for (const std::string& part : parts_of(path.parameter("share"))) {
    int percent = 0;
    const auto [rest, problem] = std::from_chars(part.data(), part.data() + part.size(), percent);
    if (problem != std::errc{} || rest != part.data() + part.size() || percent < 1 || percent > 99) percent = 0;
    percents.push_back(percent);
  }
  const bool positive = std::ranges::find(percents, 0) == percents.end();
  if (!positive || percents.size() != ways || std::reduce(percents.begin(), percents.end()) != 100)
    throw Error(ErrorKind::invalid_input, label(path) + ": parameter 'share' must have a percentage for each of " +
                                              std::to_string(ways) + " ways, 100 together, such as 75+25");
  return percents;
}

}  // namespace waywiser
