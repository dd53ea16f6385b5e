#pragma once

#include <mpi.h>

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>
#include <waywiser/base/error.hpp>
#include <waywiser/halo/halo_exchange.hpp>

namespace apps {

// The exchange of a partition as an MPI program does it: persistent requests, one for each field and part of the
// boundary, of derived types that describe where the values lie. For arrays in host memory.
class MpiHalo {
 public:
  MpiHalo(const waywiser::HaloPartition& partition, const std::vector<waywiser::HaloArray>& fields) {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    // A group of one rank beside the job's has no other rank to send to.
    if (partition.ranks != size && partition.ranks != 1)
      throw waywiser::Error(waywiser::ErrorKind::invalid_input,
                            "MPI has " + std::to_string(size) + " ranks: start this program by mpirun");
    const MPI_Comm all = partition.ranks == 1 ? MPI_COMM_SELF : MPI_COMM_WORLD;
    for (std::size_t field = 0; field < fields.size(); ++field) {
      if (fields[field].values.region.place.is_gpu())
        throw waywiser::Error(waywiser::ErrorKind::invalid_input, "MPI exchanges cells in host memory here");
      add(partition, fields[field], true, all);
      add(partition, fields[field], false, all);
    }
  }
  MpiHalo(const MpiHalo&) = delete;
  MpiHalo& operator=(const MpiHalo&) = delete;
  ~MpiHalo() {
    for (MPI_Request& request : requests_) MPI_Request_free(&request);
    for (MPI_Datatype& type : types_) MPI_Type_free(&type);
  }

  // Open MPI refuses no requests at all.
  void start() {
    if (!requests_.empty()) MPI_Startall(static_cast<int>(requests_.size()), requests_.data());
  }
  void finish() { MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE); }

 private:
  // The k-th message that one rank sends to another is the k-th that this one receives.
  void add(const waywiser::HaloPartition& partition, const waywiser::HaloArray& field, bool takes, MPI_Comm all) {
    const std::size_t bytes = waywiser::bytes_of(field.values.type);
    // The components of a cell together, or one component of all cells after the other.
    const std::size_t cell = field.planar ? bytes : bytes * field.components;
    for (const waywiser::HaloSide& side : takes ? partition.takes : partition.gives) {
      if (side.cells.count == 0) continue;
      std::byte* first = field.values.region.data + side.cells.offset * cell;
      MPI_Datatype type = type_of(side.cells, static_cast<int>(cell));
      if (field.planar) {
        MPI_Type_create_hvector(static_cast<int>(field.components), 1, static_cast<MPI_Aint>(partition.cells * cell),
                                type, &type);
        types_.push_back(type);
      }
      MPI_Type_commit(&types_.back());
      const int tag = messages_[{side.peer, takes}]++;
      MPI_Request& request = requests_.emplace_back();
      takes ? MPI_Recv_init(first, 1, type, side.peer, tag, all, &request)
            : MPI_Send_init(first, 1, type, side.peer, tag, all, &request);
    }
  }
  MPI_Datatype type_of(const waywiser::ArrayPart& part, int cell) {
    if (part.count > static_cast<std::size_t>(std::numeric_limits<int>::max()))
      throw waywiser::Error(waywiser::ErrorKind::unavailable, "a part with more cells than MPI counts");
    const auto keep = [this](MPI_Datatype made) { return types_.emplace_back(made); };
    MPI_Datatype type = MPI_BYTE;
    const waywiser::BlockLayout& layout = part.layout;
    const int run = static_cast<int>(part.apart ? layout.run : part.count);
    MPI_Type_contiguous(run * cell, MPI_BYTE, &type);
    keep(type);
    if (part.apart && !layout.indices.empty()) {
      std::vector<MPI_Aint> places;
      for (const std::size_t index : layout.indices) places.push_back(static_cast<MPI_Aint>(index) * cell);
      MPI_Type_create_hindexed_block(static_cast<int>(places.size()), 1, places.data(), types_.back(), &type);
      keep(type);
    } else if (part.apart) {
      for (std::size_t i = layout.box.size(); i-- > 0;) {
        MPI_Type_create_hvector(static_cast<int>(layout.box[i].count), 1,
                                static_cast<MPI_Aint>(layout.box[i].stride) * cell, types_.back(), &type);
        keep(type);
      }
    }
    return types_.back();
  }

  std::vector<MPI_Request> requests_;
  std::vector<MPI_Datatype> types_;
  std::map<std::pair<int, bool>, int> messages_;
};

}  // namespace apps
