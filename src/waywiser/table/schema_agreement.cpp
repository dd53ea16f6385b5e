#include "waywiser/table/schema_agreement.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/group/failure_at_all.hpp"
#include "waywiser/group/group.hpp"

namespace waywiser {
namespace {

using Texts = std::vector<std::string>;

// The purpose, then two for each column.
Texts texts_of(const std::string& purpose, const NamedTypes& columns) {
  Texts texts{purpose};
  for (const auto& [name, words] : columns) texts.insert(texts.end(), {name, words});
  return texts;
}

// What rank 0 says.
Texts told_by_first(Group& group, const Texts& mine) {
  std::string all;
  for (const std::string& each : mine) all.append(each).push_back('\0');
  std::uint64_t bytes = all.size();
  group.broadcast(std::span(&bytes, 1), 0);
  all.resize(bytes);
  group.broadcast(Elements(Region{reinterpret_cast<std::byte*>(all.data()), bytes, host(0)}, DataType::uint8), 0);
  Texts texts;
  for (std::size_t from = 0; from < all.size(); from = all.find('\0', from) + 1) texts.emplace_back(all.c_str() + from);
  return texts;
}

void check_same(const Texts& mine, const Texts& first) {
  const auto refuse_unlike = [](const std::string& why) { throw Error(ErrorKind::invalid_input, why); };
  if (mine[0] != first[0]) refuse_unlike("this is " + quoted(mine[0], 150) + ", at rank 0 " + quoted(first[0], 150));
  for (std::size_t i = 1; i + 1 < std::min(mine.size(), first.size()); i += 2) {
    const std::string at = "column " + std::to_string(i / 2) + " is ";
    if (mine[i] != first[i]) refuse_unlike(at + quoted(mine[i], 60) + ", at rank 0 " + quoted(first[i], 60));
    if (mine[i + 1] != first[i + 1])
      refuse_unlike("column " + quoted(mine[i], 60) + " is " + mine[i + 1] + ", at rank 0 " + first[i + 1]);
  }
  if (mine.size() != first.size())
    refuse_unlike(std::to_string(mine.size() / 2) + " columns, at rank 0 " + std::to_string(first.size() / 2));
}

}  // namespace

void agree_on_columns(Group& group, const std::function<NamedTypes()>& columns, const std::string& purpose) {
  NamedTypes named;
  throw_at_all(group, failure_of([&] { named = columns(); }));
  const Texts mine = texts_of(purpose, named), first = told_by_first(group, mine);
  throw_at_all(group, failure_of([&] { check_same(mine, first); }));
}

TableSchema agreed_schema(Group& group, const std::function<TableSchema()>& parse, const std::string& purpose) {
  TableSchema schema;
  const auto columns = [&] {
    schema = parse();
    NamedTypes named;
    for (const ColumnType& column : schema.columns) named.emplace_back(column.name, column.words());
    return named;
  };
  agree_on_columns(group, columns, purpose);
  return schema;
}

}  // namespace waywiser
