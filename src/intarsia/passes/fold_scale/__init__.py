"""How FoldScaleAxis moves multiplications by constants into weights.

scale           a multiplication along an axis, and what may be folded where
layer           operators with weights: what their weights take, and the weights after it
carrier         operators that a multiplication can be moved through
factor          multiplications that stay, and take another scale
backward        what becomes of each expression when scales move to producers
forward         the same when they move to consumers
placement       whether an expression may stand in for another
shift           additions after a layer, into its bias
"""
