package device

import (
	"math"

	"placer/hw/gpu/fake"
)

// references returns what every kernel computes, in plain Go: the second
// implementation that kernels.cu is compared with, and the arithmetic of the fake.
func references() map[string]fake.Kernel {
	num := func(x uint64) float32 { return math.Float32frombits(uint32(x)) }
	put := func(p *float32, x float32, add uint64) {
		if add != 0 {
			x += *p
		}
		*p = x
	}
	sigmoid := func(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }
	m := map[string]fake.Kernel{}
	m["zero"] = func(g *fake.GPU, _, _ uint32, a []uint64) { clear(g.Floats(a[0], int(a[1]))) }
	m["bias_act"] = func(g *fake.GPU, _, _ uint32, a []uint64) {
		n, d := int(a[2]), int(a[3])
		y, b := g.Floats(a[0], n), g.Floats(a[1], d)
		for i := range y {
			v := y[i] + b[i%d]
			switch a[4] {
			case 1:
				v = max(v, 0)
			case 2:
				v = sigmoid(v)
			}
			y[i] = v
		}
	}
	m["act_back"] = func(g *fake.GPU, _, _ uint32, a []uint64) {
		n := int(a[3])
		dst, y, grad := g.Floats(a[0], n), g.Floats(a[1], n), g.Floats(a[2], n)
		for i := range dst {
			switch {
			case a[4] == 2:
				dst[i] = grad[i] * y[i] * (1 - y[i])
			case y[i] > 0:
				dst[i] = grad[i]
			default:
				dst[i] = 0
			}
		}
	}
	m["gather_max"] = func(g *fake.GPU, _, _ uint32, a []uint64) {
		n, d := int(a[5]), int(a[6])
		z, start, out, from := g.Floats(a[0], n*d), g.Ints(a[1], n+1), g.Floats(a[3], n*d), g.Ints(a[4], n*d)
		index := g.Ints(a[2], int(start[n]))
		for v := range n {
			for c := range d {
				best, who := float32(0), int32(-1)
				for _, u := range index[start[v]:start[v+1]] {
					if x := z[int(u)*d+c]; who < 0 || x > best {
						best, who = x, u
					}
				}
				out[v*d+c], from[v*d+c] = best, who
			}
		}
	}
	m["gather_back"] = func(g *fake.GPU, _, _ uint32, a []uint64) { // by scattering
		n, d := int(a[6]), int(a[7])
		dz, out, grad, from := g.Floats(a[0], n*d), g.Floats(a[1], n*d), g.Floats(a[2], n*d), g.Ints(a[3], n*d)
		clear(dz)
		for i, u := range from {
			if u >= 0 {
				dz[int(u)*d+i%d] += grad[i] * out[i] * (1 - out[i])
			}
		}
	}
	// row returns row r of a + b.
	row := func(g *fake.GPU, a, b uint64, r, d int) []float64 {
		x := make([]float64, d)
		for c, v := range g.Floats(a+uint64(4*r*d), d) {
			x[c] = float64(v)
			if b != 0 {
				x[c] = float64(v + g.Floats(b+uint64(4*r*d), d)[c])
			}
		}
		return x
	}
	m["layer_norm"] = func(g *fake.GPU, _, _ uint32, a []uint64) {
		n, d := int(a[7]), int(a[8])
		gain, bias, out, mean, scale := g.Floats(a[2], d), g.Floats(a[3], d), g.Floats(a[4], n*d), g.Floats(a[5], n), g.Floats(a[6], n)
		for r := range n {
			x := row(g, a[0], a[1], r, d)
			s, q := 0.0, 0.0
			for _, v := range x {
				s += v / float64(d)
			}
			for _, v := range x {
				q += (v - s) * (v - s) / float64(d)
			}
			q = 1 / math.Sqrt(q+1e-5)
			mean[r], scale[r] = float32(s), float32(q)
			for c, v := range x {
				out[r*d+c] = float32((v-s)*q)*gain[c] + bias[c]
			}
		}
	}
	m["layer_norm_back"] = func(g *fake.GPU, _, _ uint32, a []uint64) {
		n, d := int(a[11]), int(a[12])
		gain, mean, scale, grad, gh := g.Floats(a[2], d), g.Floats(a[3], n), g.Floats(a[4], n), g.Floats(a[5], n*d), g.Floats(a[10], n*d)
		for r := range n {
			h, t := row(g, a[0], a[1], r, d), make([]float64, d)
			m1, m2 := 0.0, 0.0
			for c := range h {
				h[c] = (h[c] - float64(mean[r])) * float64(scale[r])
				gh[r*d+c] = grad[r*d+c] * float32(h[c])
				t[c] = float64(grad[r*d+c]) * float64(gain[c])
				m1 += t[c] / float64(d)
				m2 += t[c] * h[c] / float64(d)
			}
			for c := range h {
				x := float32((t[c] - m1 - h[c]*m2) * float64(scale[r]))
				if a[6] != 0 {
					put(&g.Floats(a[6], n*d)[r*d+c], x, a[7])
				}
				if a[8] != 0 {
					put(&g.Floats(a[8], n*d)[r*d+c], x, a[9])
				}
			}
		}
	}
	m["colsum"] = func(g *fake.GPU, grid, _ uint32, a []uint64) {
		rows, d, chunk := int(a[2]), int(a[3]), int(a[4])
		x, out := g.Floats(a[0], rows*d), g.Floats(a[1], int(grid)*d)
		for k := range int(grid) {
			for c := range d {
				s := 0.0
				for r := k * chunk; r < min(rows, (k+1)*chunk); r++ {
					s += float64(x[r*d+c])
				}
				put(&out[k*d+c], float32(s)*num(a[5]), a[6])
			}
		}
	}
	m["dsum"] = func(g *fake.GPU, grid, _ uint32, a []uint64) {
		rows, d, chunk := int(a[2]), int(a[3]), int(a[4])
		x, out := g.Doubles(a[0], rows*d), g.Doubles(a[1], int(grid)*d)
		clear(out)
		for r := range rows {
			for c := range d {
				out[r/chunk*d+c] += x[r*d+c]
			}
		}
	}
	m["mul_rep"] = func(g *fake.GPU, _, _ uint32, a []uint64) {
		n, na := int(a[3]), int(a[4])
		dst, x, y := g.Floats(a[0], n), g.Floats(a[1], na), g.Floats(a[2], n)
		for i := range dst {
			put(&dst[i], x[i%na]*y[i], a[5])
		}
	}
	sums := func(dst []float32, n int, add uint64, f func(i int) float32) {
		total := make([]float64, len(dst))
		for i := range n {
			total[i%len(dst)] += float64(f(i))
		}
		for i, s := range total {
			put(&dst[i], float32(s), add)
		}
	}
	m["mul_sum"] = func(g *fake.GPU, _, _ uint32, a []uint64) {
		na, n := int(a[3]), int(a[4])
		x, y := g.Floats(a[1], n), g.Floats(a[2], n)
		sums(g.Floats(a[0], na), n, a[5], func(i int) float32 { return x[i] * y[i] })
	}
	m["sum_rep"] = func(g *fake.GPU, _, _ uint32, a []uint64) {
		na, n := int(a[2]), int(a[3])
		x := g.Floats(a[1], n)
		sums(g.Floats(a[0], na), n, a[4], func(i int) float32 { return x[i] })
	}
	m["add_rep"] = func(g *fake.GPU, _, _ uint32, a []uint64) {
		n, na := int(a[3]), int(a[4])
		dst, x, y := g.Floats(a[0], n), g.Floats(a[1], n), g.Floats(a[2], na)
		for i := range dst {
			dst[i] = x[i] + y[i%na]
		}
	}
	m["embed"] = func(g *fake.GPU, _, _ uint32, a []uint64) {
		n, nh, d := int(a[4]), int(a[5]), int(a[6])
		h, index, out := g.Floats(a[0], nh), g.Ints(a[2], n/d), g.Floats(a[3], n)
		for i := range out {
			out[i] = h[i%nh]
			if k := int(index[i/d]); k >= 0 {
				out[i] += g.Floats(a[1]+uint64(4*k*d), d)[i%d]
			}
		}
	}
	m["embed_back"] = func(g *fake.GPU, grid, _ uint32, a []uint64) {
		rows, d, chunk, width := int(a[3]), int(a[4]), int(a[5]), int(a[6])
		grad, index, out := g.Floats(a[0], rows*d), g.Ints(a[1], rows), g.Floats(a[2], int(grid)*width*d)
		clear(out)
		for r, k := range index {
			for c := range d {
				if k >= 0 {
					out[(r/chunk*width+int(k))*d+c] += grad[r*d+c]
				}
			}
		}
	}
	m["masked"] = func(g *fake.GPU, _, _ uint32, a []uint64) {
		n, na := int(a[3]), int(a[4])
		dst, src, allowed := g.Floats(a[0], n), g.Floats(a[1], n), g.Ints(a[2], na)
		for i := range dst {
			x := src[i]
			if na > 0 && allowed[i%na] == 0 {
				x = num(a[5])
			}
			put(&dst[i], x, a[6])
		}
	}
	// probs calls f for each row of p with the index of its lse and head.
	probs := func(g *fake.GPU, p, total, m, n, heads, lo uint64, f func(t int, x []float32, at, head int)) {
		for t := range int(total) {
			s, h, r := t/int(heads*n), t/int(n)%int(heads), t%int(n)
			f(t, g.Floats(p+uint64(4*t)*m, int(m)), int(lo)+s*int(n)+r, h)
		}
	}
	m["softmax"] = func(g *fake.GPU, _, _ uint32, a []uint64) {
		probs(g, a[0], a[2], a[3], a[4], a[5], a[6], func(_ int, x []float32, at, head int) {
			sum := 0.0
			for _, v := range x {
				sum += math.Exp(float64(v * num(a[7])))
			}
			for i, v := range x {
				x[i] = float32(math.Exp(float64(v*num(a[7]))) / sum)
			}
			g.Floats(a[1]+uint64(4*(at*int(a[5])+head)), 1)[0] = float32(math.Log(sum))
		})
	}
	m["softmax_again"] = func(g *fake.GPU, _, _ uint32, a []uint64) {
		probs(g, a[0], a[2], a[3], a[4], a[5], a[6], func(_ int, x []float32, at, head int) {
			l := g.Floats(a[1]+uint64(4*(at*int(a[5])+head)), 1)[0]
			for i, v := range x {
				x[i] = float32(math.Exp(float64(v*num(a[7]) - l)))
			}
		})
	}
	m["softmax_back"] = func(g *fake.GPU, _, _ uint32, a []uint64) {
		heads, e := int(a[7]), int(a[8])
		probs(g, a[0], a[4], a[5], a[6], a[7], a[9], func(t int, dp []float32, at, head int) {
			p, o, sum := g.Floats(a[1]+uint64(4*t)*a[5], int(a[5])), uint64(4*(at*heads+head)*e), 0.0
			for i, v := range g.Floats(a[2]+o, e) {
				sum += float64(v) * float64(g.Floats(a[3]+o, e)[i])
			}
			for i := range dp {
				dp[i] = p[i] * (dp[i] - float32(sum)) * num(a[10])
			}
		})
	}
	m["add_memory"] = func(g *fake.GPU, _, _ uint32, a []uint64) {
		n, all := int(a[2]), int(a[3])
		d, mem := g.Floats(a[0], n*3*all), g.Floats(a[1], n*2*all)
		for i, v := range mem {
			d[i/(2*all)*3*all+all+i%(2*all)] += v
		}
	}
	m["columns"] = func(g *fake.GPU, _, _ uint32, a []uint64) {
		for r := range a[4] {
			dst := g.Floats(a[0]+4*r*a[1], int(a[5]))
			for c, v := range g.Floats(a[2]+4*r*a[3], int(a[5])) {
				put(&dst[c], v, a[6])
			}
		}
	}
	m["spread"] = func(g *fake.GPU, _, _ uint32, a []uint64) {
		n, d := int(a[2]), int(a[3])
		dst, x := g.Floats(a[0], n), g.Floats(a[1], d)
		for i := range dst {
			put(&dst[i], x[i%d]*num(a[4]), a[5])
		}
	}
	m["ppo"] = referencePPO
	m["squares"] = func(g *fake.GPU, grid, block uint32, a []uint64) {
		threads := int(grid * block)
		out := g.Doubles(a[2], threads/32)
		clear(out)
		for i, v := range g.Floats(a[0], int(a[1])) {
			out[i%threads/32] += float64(v) * float64(v)
		}
	}
	m["adam"] = func(g *fake.GPU, _, _ uint32, a []uint64) {
		n := int(a[4])
		w, m1, m2, grad := g.Floats(a[0], n), g.Floats(a[1], n), g.Floats(a[2], n), g.Floats(a[3], n)
		b1, b2 := float64(num(a[6])), float64(num(a[7]))
		for i := range w {
			x := float64(grad[i] * num(a[5]))
			m1[i] = float32(b1*float64(m1[i]) + (1-b1)*x)
			m2[i] = float32(b2*float64(m2[i]) + (1-b2)*x*x)
			w[i] -= float32(float64(num(a[8])) * float64(m1[i]) / (math.Sqrt(float64(m2[i])) + float64(num(a[9]))))
			grad[i] = 0
		}
	}
	return m
}

// referencePPO follows the formulas one choice at a time.
func referencePPO(g *fake.GPU, _, _ uint32, a []uint64) {
	rows, width, samples, n, at, all, per := int(a[6]), int(a[7]), int(a[8]), int(a[9]), int(a[10]), int(a[11]), int(a[12])
	eps, f, fe := math.Float64frombits(a[14]), math.Float64frombits(a[15]), math.Float64frombits(a[16])
	x, dx, stats := g.Floats(a[0], rows*width), g.Floats(a[1], rows*width), g.Doubles(a[5], rows*5)
	actions, logProb, advantage := g.Ints(a[2], samples*all), g.Floats(a[3], samples*all), g.Floats(a[4], samples*per)
	for r := range rows {
		row, sum := x[r*width:(r+1)*width], 0.0
		for _, v := range row {
			sum += math.Exp(float64(v))
		}
		logp := func(i int) float64 { return float64(row[i]) - math.Log(sum) }
		s := stats[5*r : 5*r+5]
		clear(s)
		d := make([]float64, width)
		for i := range row {
			if p := math.Exp(logp(i)); p > 0 {
				s[1] -= p * logp(i)
			}
		}
		for i := range row {
			if p := math.Exp(logp(i)); p > 0 {
				d[i] = fe * p * (logp(i) + s[1])
			}
		}
		for k := range samples {
			v := k*all + at + r%n
			if a[13] == 0 && k != r/n {
				continue
			}
			adv := float64(advantage[k*per])
			if per > 1 {
				adv = float64(advantage[v])
			}
			act := int(actions[v])
			l := logp(act) - float64(logProb[v])
			ratio := math.Exp(l)
			clipped, slope := min(max(ratio, 1-eps), 1+eps), ratio*adv
			if clipped != ratio {
				s[4]++
			}
			if clipped*adv < ratio*adv {
				slope = 0
			}
			s[0] += min(ratio*adv, clipped*adv)
			s[2] -= l
			s[3] += ratio - 1 - l
			for i := range d {
				d[i] += f * slope * math.Exp(logp(i))
			}
			d[act] -= f * slope
		}
		for i := range d {
			dx[r*width+i] = float32(d[i])
		}
	}
}
