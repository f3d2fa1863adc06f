"""Writes model.pb, params.pb and response.pb with the protocol buffers of Python's
package ortools (9.15.6755), for the tests of the wire format. Run it in this
folder."""

from ortools.sat import cp_model_pb2, sat_parameters_pb2

m = cp_model_pb2.CpModelProto()
for low, high in [(0, 1), (0, 1), (-5, 100), (0, 1000), (3, 3)]:
    m.variables.add().domain.extend([low, high])
c = m.constraints.add()  # -2^63 <= 2 c + 3 d <= 17 - 4, only if a and not b
c.enforcement_literal.extend([0, -2])
c.linear.vars.extend([2, 3])
c.linear.coeffs.extend([2, 3])
c.linear.domain.extend([-(2**63), 13])
m.constraints.add().bool_or.literals.extend([0, -2])
m.constraints.add().exactly_one.literals.extend([-1, 1])
c = m.constraints.add()  # d = max(c + 1, 7)
c.lin_max.target.vars.append(3)
c.lin_max.target.coeffs.append(1)
e = c.lin_max.exprs.add()
e.vars.append(2)
e.coeffs.append(1)
e.offset = 1
c.lin_max.exprs.add().offset = 7
c = m.constraints.add()  # c + e == d, if a
c.enforcement_literal.append(0)
c.linear.vars.extend([2, 3, 4])
c.linear.coeffs.extend([1, -1, 1])
c.linear.domain.extend([0, 0])
c = m.constraints.add()
c.enforcement_literal.append(0)
for part, v in [(c.interval.start, 2), (c.interval.size, 4), (c.interval.end, 3)]:
    part.vars.append(v)
    part.coeffs.append(1)
m.constraints.add().no_overlap.intervals.append(5)
m.objective.vars.extend([0, 3])
m.objective.coeffs.extend([-2, 1])
m.objective.offset = 2
m.solution_hint.vars.extend([3, 1])
m.solution_hint.values.extend([500, 0])
open("model.pb", "wb").write(m.SerializeToString(deterministic=True))

p = sat_parameters_pb2.SatParameters()
p.max_time_in_seconds = 2.5
p.max_deterministic_time = 0.5
p.random_seed = 7
p.num_workers = 3
p.catch_sigint_signal = False
open("params.pb", "wb").write(p.SerializeToString(deterministic=True))

r = cp_model_pb2.CpSolverResponse()
r.status = cp_model_pb2.FEASIBLE
r.solution.extend([1, -7, 2**40])
r.objective_value = 12.5
r.best_objective_bound = -3.0
r.deterministic_time = 0.25
r.wall_time = 9.0
r.num_conflicts = 4
r.solution_info = "something"
open("response.pb", "wb").write(r.SerializeToString(deterministic=True))
