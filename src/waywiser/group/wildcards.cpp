#include "waywiser/group/wildcards.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/message/rendezvous_tag.hpp"
#include "waywiser/group/named_receive.hpp"

namespace waywiser {
namespace {

// Labels from here on are of exchanges and of messages on streams.
constexpr int first_label_of_no_tag = 0x8000;

struct Pattern {
  Tag tag, mask;
};

Pattern pattern_of(const Members& members, Envelope wanted) {
  const bool any_rank = wanted.source == any_source, any_label = wanted.tag == any_tag;
  const Tag sources = make_tag(0, false, 0x7fff, 0, {}) ^ make_tag(0, false, 0, 0, {});
  const Tag tags = make_tag(0, false, 0, first_label_of_no_tag - 1, {}) ^ make_tag(0, false, 0, 0, {});
  return {members.tag(any_rank ? 0 : wanted.source, any_label ? 0 : static_cast<unsigned>(wanted.tag), {}),
          matched_bits & ~(any_rank ? sources : 0) & ~(any_label ? tags : 0)};
}

Envelope envelope_of(Tag tag) { return {source_of(tag), label_of(tag)}; }

bool fits(Envelope wanted, Envelope message) {
  return (wanted.source == any_source || wanted.source == message.source) &&
         (wanted.tag == any_tag || wanted.tag == message.tag);
}

}  // namespace

std::shared_ptr<WildcardReceive> Wildcards::add(const Call& call, Elements into, Envelope wanted,
                                                MessageStatus* status) {
  auto receive = std::make_shared<WildcardReceive>(shared_from_this(), call, into, wanted, status);
  unmatched_.push_back(receive.get());
  return receive;
}

std::optional<Received> Wildcards::probe(Envelope wanted) {
  const auto [tag, mask] = pattern_of(*members_, wanted);
  if (wanted.source == any_source) return session_.engine().probe(members_->world, tag, mask);
  const int peer = static_cast<int>(members_->peer(wanted.source));
  return session_.engine().probe(std::span(&peer, 1), tag, mask);
}

// A message may have come after an earlier receive was looked at. `last`: where the search ends; nullptr: nowhere.
bool Wildcards::give_to_first(const Received& found, const WildcardReceive* last) {
  const Envelope message = envelope_of(found.tag);
  const auto taker = std::ranges::find_if(
      unmatched_, [&](const WildcardReceive* one) { return one == last || fits(one->wanted(), message); });
  if (taker == unmatched_.end()) return false;
  WildcardReceive& receive = **taker;
  unmatched_.erase(taker);
  receive.take(found);
  return true;
}

void Wildcards::match() {
  for (std::size_t i = 0; i < unmatched_.size();) {
    if (WildcardReceive& first = *unmatched_.front(); first.is_named()) {
      unmatched_.erase(unmatched_.begin());
      first.begin_named();
      i = 0;
      continue;
    }
    const WildcardReceive* one = unmatched_[i];
    const auto found = probe(one->wanted());
    if (found) give_to_first(*found, one);
    i = found ? 0 : i + 1;
  }
}

std::optional<Received> Wildcards::find(Envelope wanted) {
  match();
  for (;;) {
    const auto found = probe(wanted);
    if (!found || !give_to_first(*found, nullptr)) return found;
  }
}

MessageStatus Wildcards::status_of(const Received& found, const Call& call) const {
  const auto [source, tag] = envelope_of(found.tag);
  const std::string who = text(call) + ": rank " + std::to_string(source);
  if (is_rts(found.tag) || is_head(found.tag))
    throw Error(ErrorKind::unavailable,
                who + (is_rts(found.tag) ? " sends an array of a GPU" : " sends by several network cards") +
                    ", whose length is known only to a receive; receive it with a status");
  const auto type = static_cast<DataType>(found.tag >> 11 & 0xf);
  Call sent{CallKind::send, static_cast<int>(type) < data_types ? type : DataType::uint8};
  const Tag expected = members_->tag(source, static_cast<unsigned>(tag), sent);
  if (const auto why = unlike(found, expected, found.bytes, source))
    session_.fail(ErrorKind::invalid_input, text(call) + ": " + *why);
  return {source, tag, sent.type, found.bytes / bytes_of(sent.type)};
}

WildcardReceive::WildcardReceive(std::shared_ptr<Wildcards> all, const Call& call, Elements into, Envelope wanted,
                                 MessageStatus* status)
    : all_(std::move(all)), call_(call), into_(into), wanted_(wanted), status_(status) {}

WildcardReceive::~WildcardReceive() {
  all_->remove(*this);
  if (header_.is_open()) all_->session().give_up(*this);
}

bool WildcardReceive::is_named() const noexcept {
  return status_ == nullptr && wanted_.source != any_source && wanted_.tag != any_tag;
}

void WildcardReceive::begin_named() { begin(into_.region.bytes); }

void WildcardReceive::take(const Received& found) {
  wanted_ = envelope_of(found.tag);
  call_.peer = wanted_.source;
  call_.peer_in_job = static_cast<int>(all_->members().peer(wanted_.source));
  const bool says_length = !is_rts(found.tag) && !is_head(found.tag);
  if (status_ == nullptr || is_rts(found.tag)) return begin(into_.region.bytes);
  if (says_length) return begin(found.bytes);
  stage_ = Stage::head;
  all_->session().engine().receive(all_->members().peer(wanted_.source), found.tag, head_.data(), sizeof head_,
                                   header_);
}

// A message that is too long, or is no whole number of elements, meets the whole array: then the receive says so.
void WildcardReceive::begin(Bytes bytes, const MessageHead* head) {
  stage_ = Stage::receives;
  if (bytes < into_.region.bytes && bytes % bytes_of(into_.type) == 0)
    into_ = into_.slice(0, bytes / bytes_of(into_.type));
  call_.count = into_.count();
  rest_ = named_receive(all_->session(), all_->members(), call_, into_, wanted_.tag, head);
}

bool WildcardReceive::advance() {
  if (stage_ == Stage::unmatched) all_->match();
  if (stage_ == Stage::head && all_->session().engine().test(header_)) begin(head_[1], &head_);
  if (stage_ != Stage::receives) return stage_ == Stage::done;
  if (rest_ && !rest_->advance()) return false;
  stage_ = Stage::done;
  rest_.reset();
  if (status_ != nullptr) *status_ = {wanted_.source, wanted_.tag, into_.type, into_.count()};
  return true;
}

std::string WildcardReceive::progress_text() const { return rest_ ? rest_->progress_text() : "no message has come"; }

void WildcardReceive::abandon() noexcept {
  all_->remove(*this);
  all_->session().engine().cancel(header_);
  if (rest_) rest_->abandon();
  stage_ = Stage::done;
}

}  // namespace waywiser
