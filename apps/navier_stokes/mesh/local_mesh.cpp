#include "apps/navier_stokes/mesh/local_mesh.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string>
#include <waywiser/base/error.hpp>

namespace flow {
namespace {

// One side of a face: the points that it has in common with the other side, and where it is.
struct Side {
  std::array<Index, 4> points{};
  Index cell = 0;
  std::uint8_t place = 0;  // in the list of faces of the cell's shape
};

std::vector<Index> vertices_of_face(const CellList& whole, std::int64_t cell, std::size_t place) {
  const std::span<const Index> vertices = whole.vertices_of(cell);
  std::vector<Index> face;
  for (const int i : faces_of(whole.shapes[at(cell)])[place]) face.push_back(vertices[static_cast<std::size_t>(i)]);
  return face;
}

// The cells that have a point in common with an owned cell: owned ones first, then others.
std::vector<std::int64_t> cells_around(const CellList& whole, const std::vector<int>& part_of, int rank) {
  std::vector<char> touched(whole.points.size(), 0);
  const auto same = [&](Index point) { return whole.same_as.empty() ? point : whole.same_as[at(point)]; };
  std::vector<std::int64_t> cells, others;
  for (std::int64_t cell = 0; cell < whole.cells(); ++cell) {
    if (part_of[at(cell)] != rank) continue;
    cells.push_back(cell);
    for (const Index point : whole.vertices_of(cell)) touched[at(same(point))] = 1;
  }
  for (std::int64_t cell = 0; cell < whole.cells(); ++cell) {
    const auto is_touched = [&](Index point) { return touched[at(same(point))] != 0; };
    if (part_of[at(cell)] != rank && std::ranges::any_of(whole.vertices_of(cell), is_touched)) others.push_back(cell);
  }
  cells.insert(cells.end(), others.begin(), others.end());
  return cells;
}

std::vector<Side> sides_of(const CellList& whole, const std::vector<std::int64_t>& cells) {
  std::vector<Side> sides;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::span<const Index> vertices = whole.vertices_of(cells[i]);
    const auto faces = faces_of(whole.shapes[at(cells[i])]);
    for (std::size_t place = 0; place < faces.size(); ++place) {
      Side side{{}, static_cast<Index>(i), static_cast<std::uint8_t>(place)};
      side.points.fill(std::numeric_limits<Index>::max());
      for (std::size_t k = 0; k < faces[place].size(); ++k) {
        const Index point = vertices[static_cast<std::size_t>(faces[place][k])];
        side.points[k] = whole.same_as.empty() ? point : whole.same_as[at(point)];
      }
      std::ranges::sort(side.points);
      sides.push_back(side);
    }
  }
  std::ranges::sort(sides, [&](const Side& a, const Side& b) {
    return a.points != b.points ? a.points < b.points : cells[at(a.cell)] < cells[at(b.cell)];
  });
  return sides;
}

// Renumbers the neighbours and makes the lists of the partition: what a rank gives to another one are its cells that
// have a face in common with that one's, in the order of the whole mesh, so that no messages are needed.
class Builder {
 public:
  Builder(const CellList& whole, const std::vector<int>& part_of, int rank, const BoundaryAt& boundary_at)
      : whole_(whole), part_of_(part_of), rank_(rank), boundary_at_(boundary_at) {}

  LocalMesh made() {
    candidates_ = cells_around(whole_, part_of_, rank_);
    const std::vector<Side> sides = sides_of(whole_, candidates_);
    mesh_.dimensions = whole_.dimensions;
    mesh_.owned = std::count(part_of_.begin(), part_of_.end(), rank_);
    const std::vector<std::array<const Side*, 2>> pairs = paired(sides);
    number_ghosts(pairs);
    add_faces(pairs);
    for (std::int64_t i = 0; i < mesh_.owned; ++i) {
      const std::int64_t cell = candidates_[at(i)];
      mesh_.volume.push_back(geometry_of_cell(whole_, cell).volume);
      if (!(mesh_.volume.back() > 0))
        throw waywiser::Error(waywiser::ErrorKind::invalid_input,
                              "cell " + std::to_string(cell) + " of the mesh has no volume");
    }
    copy_owned_cells();
    return std::move(mesh_);
  }

 private:
  bool owned(const Side* side) const { return side != nullptr && side->cell < mesh_.owned; }
  int owner(Index candidate) const { return part_of_[at(candidates_[at(candidate)])]; }

  std::vector<std::array<const Side*, 2>> paired(const std::vector<Side>& sides) const {
    std::vector<std::array<const Side*, 2>> pairs;
    for (std::size_t i = 0; i < sides.size();) {
      const bool two = i + 1 < sides.size() && sides[i].points == sides[i + 1].points;
      const std::array<const Side*, 2> pair = {&sides[i], two ? &sides[i + 1] : nullptr};
      i += two ? 2 : 1;
      if (owned(pair[0]) || owned(pair[1])) pairs.push_back(pair);
    }
    return pairs;
  }

  void number_ghosts(const std::vector<std::array<const Side*, 2>>& pairs) {
    std::map<int, GhostLists> neighbors;  // cells as places in the list of candidates
    for (const auto& [a, b] : pairs) {
      if (b == nullptr || owned(a) == owned(b)) continue;
      const Index mine = owned(a) ? a->cell : b->cell, other = owned(a) ? b->cell : a->cell;
      GhostLists& lists = neighbors[owner(other)];
      lists.give.push_back(mine);
      lists.take.push_back(other);
    }
    local_of_.assign(candidates_.size(), -1);
    for (std::int64_t i = 0; i < mesh_.owned; ++i) local_of_[at(i)] = static_cast<Index>(i);
    mesh_.cells = mesh_.owned;
    mesh_.global.assign(candidates_.begin(), candidates_.begin() + mesh_.owned);
    for (auto& [peer, each] : neighbors) {
      each.peer = peer;
      // Both parts of the candidates are in the order of the whole mesh.
      for (std::vector<std::int64_t>* list : {&each.give, &each.take}) {
        std::ranges::sort(*list);
        list->erase(std::ranges::unique(*list).begin(), list->end());
      }
      for (std::int64_t& cell : each.take) {
        local_of_[at(cell)] = static_cast<Index>(mesh_.cells);
        mesh_.global.push_back(candidates_[at(cell)]);
        cell = mesh_.cells++;
      }
      mesh_.neighbors.push_back(each);
    }
  }

  void add_faces(const std::vector<std::array<const Side*, 2>>& pairs) {
    std::vector<std::array<Index, 6>> of_cell(at(mesh_.owned));
    for (const auto& [a, b] : pairs) {
      LocalMesh::Face face;
      const std::int64_t inside = candidates_[at(a->cell)];
      const FaceGeometry geometry = geometry_of_face(whole_, vertices_of_face(whole_, inside, a->place));
      face.inside = local_of_[at(a->cell)];
      face.number = 6 * inside + a->place;
      face.area = geometry.area;
      face.from_inside = geometry.center - geometry_of_cell(whole_, inside).center;
      if (b != nullptr) {
        const std::int64_t outside = candidates_[at(b->cell)];
        const FaceGeometry other = geometry_of_face(whole_, vertices_of_face(whole_, outside, b->place));
        face.outside = local_of_[at(b->cell)];
        face.from_outside = other.center - geometry_of_cell(whole_, outside).center;
      } else {
        face.outside = static_cast<Index>(-1 - static_cast<std::int64_t>(mesh_.boundary.size()));
        const auto vertices = vertices_of_face(whole_, inside, a->place);
        mesh_.boundary.push_back(boundary_at_({geometry.center, vertices}));
        // What is mirrored at a plane is across it.
        if (mesh_.boundary.back().symmetry)
          face.from_inside = (dot(face.from_inside, face.area) / dot(face.area, face.area)) * face.area;
      }
      for (const Side* side : {a, b})
        if (owned(side)) of_cell[at(side->cell)][side->place] = static_cast<Index>(mesh_.faces.size());
      mesh_.faces.push_back(face);
    }
    mesh_.first_face.push_back(0);
    for (std::int64_t i = 0; i < mesh_.owned; ++i) {
      const auto faces = faces_of(whole_.shapes[at(candidates_[at(i)])]).size();
      mesh_.faces_of_cell.insert(mesh_.faces_of_cell.end(), of_cell[at(i)].begin(),
                                 of_cell[at(i)].begin() + static_cast<std::ptrdiff_t>(faces));
      mesh_.first_face.push_back(static_cast<Index>(mesh_.faces_of_cell.size()));
    }
  }

  void copy_owned_cells() {
    CellList& list = mesh_.owned_cells;
    list.dimensions = whole_.dimensions;
    list.first.push_back(0);
    std::vector<Index> number(whole_.points.size(), -1);
    for (std::int64_t i = 0; i < mesh_.owned; ++i) {
      std::vector<Index> vertices;
      for (const Index point : whole_.vertices_of(candidates_[at(i)])) {
        if (number[at(point)] < 0) {
          number[at(point)] = static_cast<Index>(list.points.size());
          list.points.push_back(whole_.points[at(point)]);
        }
        vertices.push_back(number[at(point)]);
      }
      list.add(whole_.shapes[at(candidates_[at(i)])], vertices);
    }
  }

  const CellList& whole_;
  const std::vector<int>& part_of_;
  const int rank_;
  const BoundaryAt& boundary_at_;
  std::vector<std::int64_t> candidates_;  // owned cells, then those around them
  std::vector<Index> local_of_;           // of each candidate; -1: not even a ghost
  LocalMesh mesh_;
};

}  // namespace

LocalMesh local_mesh(const CellList& whole, const std::vector<int>& part_of, int rank, const BoundaryAt& boundary_at) {
  return Builder(whole, part_of, rank, boundary_at).made();
}

}  // namespace flow
