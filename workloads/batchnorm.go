package workloads

// normConfig says how batch normalisation is written.
type normConfig struct {
	// fused uses TensorFlow's one kernel; otherwise the ops of tf.nn.moments and
	// tf.nn.batch_normalization.
	fused bool
	// scale adds a trained factor per channel (gamma).
	scale bool
	// averages keeps a shadow copy of every variable of the model
	// (tf.train.ExponentialMovingAverage), which evaluation reads.
	averages bool
	// decay adds a penalty on the squares of the weights to the loss.
	decay bool
}

// cnn is a convolutional network being built.
type cnn struct {
	*net
	norm   normConfig
	losses []tensor // penalties on weights
	groups int32
}

// weights adds a variable with what the configuration wants beside it: the
// penalty on its squares and the shadow copy.
func (n *cnn) weights(name string, dims ...int64) tensor {
	w := n.averaged(n.variable(name, dims...))
	if n.norm.decay {
		n.sub("regularizer", func() {
			n.losses = append(n.losses, n.binary("Mul", n.scalar(), n.op("L2Loss", n.of(), w)))
		})
	}
	return w
}

// averaged adds the shadow copy of the variable that read reads, and its update.
func (n *cnn) averaged(read tensor) tensor {
	if n.norm.averages {
		n.sub("average", func() {
			shadow := n.state("shadow", false, n.shape(read)...)
			n.movingAverage(shadow, read)
		})
	}
	return read
}

// movingAverage is assign_moving_average: shadow -= (shadow - value) * (1 -
// decay), on the device of the shadow variable.
func (n *cnn) movingAverage(shadow, value tensor) {
	ref := n.variableOf(shadow)
	n.groups++
	group := n.groups
	for _, t := range []tensor{ref, shadow} {
		n.b.At(n.b.TensorAt(t).Producer).Group = group
	}
	delta := n.binary("Mul", n.binary("Sub", shadow, value), n.scalar())
	out := n.like(ref)
	out.Resident = true
	i := n.add("AssignSub", "AssignSub", []tensor{ref, delta}, out)
	n.b.At(i).Group = group
	n.b.At(i).Bytes = 3 * bytesOf(out) // reads the variable and the difference, writes the variable
}

// batchNorm normalises x, [B,Y,X,C], over all but the channels with the batch's
// statistics, and updates their moving averages.
func (n *cnn) batchNorm(x tensor) (y tensor) {
	n.sub("batch_norm", func() {
		c := n.dim(x, 3)
		beta := n.averaged(n.variable("beta", c))
		var gamma tensor
		if n.norm.scale {
			gamma = n.averaged(n.variable("gamma", c))
		}
		movingMean := n.averaged(n.state("moving_mean", false, c))
		movingVariance := n.averaged(n.state("moving_variance", false, c))
		var mean, variance tensor
		if n.norm.fused {
			if !n.norm.scale {
				gamma = n.constant(n.of(c)) // the kernel wants one
			}
			// Empty tensors stand for the statistics that inference would read.
			op := n.add("FusedBatchNorm", "FusedBatchNorm", []tensor{x, gamma, beta, n.constant(n.of(0)), n.constant(n.of(0))},
				n.like(x), n.of(c), n.of(c), n.of(c), n.of(c))
			y, mean, variance = n.b.Output(op, 0), n.b.Output(op, 1), n.b.Output(op, 2)
		} else {
			mean, variance = n.moments(x)
			// x * inv + (beta - mean * inv), inv = gamma / sqrt(variance + epsilon)
			inv := n.unary("Rsqrt", n.binary("Add", variance, n.scalar()))
			if n.norm.scale {
				inv = n.binary("Mul", inv, gamma)
			}
			y = n.binary("Add", n.binary("Mul", x, inv), n.binary("Sub", beta, n.binary("Mul", mean, inv)))
		}
		n.sub("moving_mean_update", func() { n.movingAverage(movingMean, mean) })
		n.sub("moving_variance_update", func() { n.movingAverage(movingVariance, variance) })
	})
	return y
}

// moments is tf.nn.moments over all but the channels: mean and variance, [C]
// each.
func (n *cnn) moments(x tensor) (mean, variance tensor) {
	n.sub("moments", func() {
		c := n.dim(x, 3)
		squeeze := func(t tensor) tensor { return n.op("Squeeze", n.of(c), t) }
		m := n.reduce("Mean", x, true, 0, 1, 2)
		d := n.binary("SquaredDifference", x, n.unary("StopGradient", m))
		v := n.reduce("Mean", d, true, 0, 1, 2)
		mean, variance = squeeze(m), squeeze(v)
	})
	return mean, variance
}

// classify adds the loss of logits, [B,V], with smoothed labels, and returns it.
func (n *cnn) classify(logits, labels tensor) tensor {
	batch, classes := n.dim(logits, 0), n.dim(logits, 1)
	oneHot := n.op("OneHot", n.of(batch, classes), labels, n.axis(), n.scalar(), n.scalar())
	smooth := n.binary("Add", n.binary("Mul", oneHot, n.scalar()), n.scalar())
	op := n.add("SoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits", []tensor{logits, smooth}, n.of(batch), n.like(logits))
	return n.binary("Mul", n.sumAll("Mean", n.b.Output(op, 0)), n.scalar())
}
