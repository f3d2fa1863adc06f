package ppo

import "math"

// InvalidReward is the reward of a decision that cannot run (GO, section 4.1).
const InvalidReward = -10

// Reward returns -sqrt(seconds/baseline), the reward of a valid decision (GO,
// section 4.1).
func Reward(seconds, baseline float64) float32 { return -float32(math.Sqrt(seconds / baseline)) }
