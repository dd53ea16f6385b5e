#include "waywiser/offload/request.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/offload/memory_channel.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/offload/array_head_wire.hpp"

namespace waywiser {
namespace {

class RandomRequests {
 public:
  explicit RandomRequests(unsigned seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  std::string text(std::size_t most) {
    std::string text(below(most + 1), ' ');
    for (char& c : text) c = static_cast<char>(below(256));
    return text;
  }
  ArrayHead head() {
    ArrayHead head;
    head.of_bools = below(4) == 0;
    head.type = head.of_bools ? DataType::uint8 : static_cast<DataType>(below(data_types));
    for (auto dimensions = below(5); dimensions > 0; --dimensions) head.shape.push_back(below(1000));
    return head;
  }
  RemoteRequest request() {
    RemoteRequest request;
    request.kind = static_cast<RequestKind>(1 + below(last_request_kind));
    request.array = random_();
    switch (request.kind) {
      case RequestKind::zeros:
      case RequestKind::array: request.head = head(); break;
      case RequestKind::put: add_part(request); break;
      case RequestKind::run: add_call(request); break;
      case RequestKind::pin:
        request.bytes = below(largest_remote_array + 1);
        request.at = random_();
        add_secret(request);
        break;
      case RequestKind::array_from:
      case RequestKind::get_into:
        request.head = head();
        add_place(request);
        break;
      case RequestKind::put_from:
      case RequestKind::begin_put:
      case RequestKind::get_part:
      case RequestKind::copy:
        add_part(request);
        add_place(request);
        break;
      case RequestKind::fill:
        add_part(request);
        request.at = random_();
        request.earlier = random_();
        break;
      case RequestKind::start:
        add_shape(request);
        request.parameters = text(most_parameter_bytes);
        break;
      case RequestKind::ask:
        add_call(request);
        request.bytes = below(longest_kernel_name + 1);
        break;
      case RequestKind::take: request.address = text(longest_address); [[fallthrough]];
      case RequestKind::give:
      case RequestKind::plain: add_secret(request); break;
      case RequestKind::since: request.earlier = random_(); break;
      case RequestKind::road: request.road = data_roads[below(data_roads.size())]; break;
      case RequestKind::code: request.bytes = below(longest_code + 1); break;
      case RequestKind::launch:
        request.function = text(longest_function_name);
        add_shape(request);
        for (auto count = below(9); count > 0; --count)
          request.kernel_arguments.push_back({static_cast<KernelArgument::Kind>(below(5)), random_()});
        break;
      default: break;
    }
    return request;
  }

 private:
  void add_secret(RemoteRequest& request) {
    for (std::size_t i = 0; i < digits_of_road; ++i) request.secret += "0123456789abcdef"[below(16)];
  }
  void add_part(RemoteRequest& request) {
    request.offset = random_();
    request.bytes = below(largest_remote_array + 1);
  }
  void add_place(RemoteRequest& request) {
    request.memory = random_();
    request.at = random_();
  }
  void add_call(RemoteRequest& request) {
    request.function = text(longest_function_name);
    for (auto count = below(9); count > 0; --count) request.arguments.push_back(random_());
    for (auto count = below(4); count > 0; --count)
      request.numbers.emplace_back(text(longest_number_name), static_cast<double>(below(1000)) / 7);
  }
  void add_shape(RemoteRequest& request) {
    for (auto* lengths : {&request.shape.grid, &request.shape.block})
      for (std::uint32_t& length : *lengths) length = static_cast<std::uint32_t>(random_());
    request.shape.shared = static_cast<std::uint32_t>(random_());
  }

  std::mt19937_64 random_;
};

TEST(RemoteRequest, AFrameIsReadAsItWasWritten) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomRequests random(seed);
    std::vector<RemoteRequest> requests(random.below(4));
    for (RemoteRequest& request : requests) request = random.request();
    const std::vector<std::byte> frame = frame_with(requests);
    RequestReader reader(frame);
    for (const RemoteRequest& request : requests) EXPECT_EQ(reader.next(), request) << seed;
    EXPECT_EQ(reader.next(), std::nullopt);
  }
}

// A byte that is different, or an end that comes early, is refused or gives other requests that keep all bounds.
TEST(RemoteRequest, AChangedFrameIsReadWithinItsBoundsOrRefused) {
  int refused = 0, read = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    RandomRequests random(seed);
    std::vector<std::byte> frame = frame_with({random.request(), random.request()});
    frame[random.below(300)] = static_cast<std::byte>(random.below(256));
    if (random.below(4) == 0) frame.resize(random.below(100));
    try {
      RequestReader reader(frame);
      while (const auto request = reader.next()) {
        ++read;
        EXPECT_LE(request->head.bytes(), largest_remote_array);
        EXPECT_LE(request->bytes, request->kind == RequestKind::code ? longest_code : largest_remote_array);
        EXPECT_LE(request->function.size(), longest_function_name);
      }
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(error.kind(), ErrorKind::invalid_input);
      EXPECT_EQ(std::string(error.what()).find("a request: "), 0u) << error.what();
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(read, 100);
}

TEST(RemoteRequest, ShapesThatNoMemoryHoldsAreRefused) {
  for (const std::vector<std::uint64_t>& shape : {std::vector<std::uint64_t>{std::uint64_t{1} << 46},
                                                  {std::uint64_t{1} << 40, 0, std::uint64_t{1} << 40},
                                                  std::vector<std::uint64_t>(33, 1)}) {
    RemoteRequest request;
    request.kind = RequestKind::zeros;
    request.head = {DataType::float64, false, shape};
    const std::vector<std::byte> frame = frame_with({request});
    RequestReader reader(frame);
    EXPECT_THROW(reader.next(), Error);
    EXPECT_THROW(check(request.head), Error);
  }
}

TEST(RemoteReply, IsReadAsItWasWritten) {
  RemoteReply reply;
  reply.failure = RemoteFailure{ErrorKind::device, "a line\nand another" + std::string(600, '.') + "\xc3\xa9"};
  reply.used = 5;
  reply.requests = 7;
  reply.since = 0.25;
  reply.times = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}, 13};
  reply.head = ArrayHead{DataType::complex128, false, {3, 0, 5}};
  const RemoteReply read = read_reply(frame_of(reply));
  ASSERT_TRUE(read.failure);
  EXPECT_EQ(read.failure->kind, ErrorKind::device);
  EXPECT_EQ(read.failure->text.substr(0, 20), "a line and another..");
  EXPECT_EQ(read.failure->text.size(), 480u);
  EXPECT_EQ(std::pair(read.used, read.requests), std::pair(reply.used, reply.requests));
  EXPECT_EQ(read.times.device.begin, 8);
  EXPECT_EQ(read.times.output.end, 12);
  EXPECT_EQ(read.times.now, 13);
  EXPECT_EQ(read.since, 0.25);
  EXPECT_EQ(read.head, reply.head);
  reply.details = longest_details;
  EXPECT_EQ(read_reply(frame_of(reply)).details, longest_details);
  reply.details = longest_details + 1;
  EXPECT_THROW(read_reply(frame_of(reply)), Error);
  reply.details = 0;
  reply.failure = RemoteFailure{ErrorKind::io, std::string(479, 'x') + "\xc3\xa9"};
  EXPECT_EQ(read_reply(frame_of(reply)).failure->text, std::string(479, 'x'));  // no half of a character
}

TEST(RemoteReply, ChangedBytesAreRefusedOrRead) {
  const ReplyFrame frame = frame_of({RemoteFailure{}, 1, 2, {}, ArrayHead{DataType::int8, false, {4}}});
  int refused = 0;
  for (std::size_t at = 0; at < 150; ++at)
    for (const int value : {0, 7, 255}) {
      ReplyFrame changed = frame;
      changed[at] = static_cast<std::byte>(value);
      try {
        EXPECT_LE(read_reply(changed).head.value_or(ArrayHead{}).bytes(), largest_remote_array);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::invalid_input);
        ++refused;
      }
    }
  EXPECT_GT(refused, 3);
}

}  // namespace
}  // namespace waywiser
