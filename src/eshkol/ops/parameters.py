"""What the parameters of the ops mean, in a sentence each, and their types as users are told them.

Comes in: nothing. Goes out: `described(op, parameter)` and `TYPES`, which `calls.py` makes help and signatures of. A
name means the same in most rows, so it is described once; "row.name" is for rows where it means something else. A test
asserts that every parameter of every public row is described.
"""

from __future__ import annotations

from eshkol.ops.row import Op

_SENTENCES = """
x | a tensor
gains | what each element before is multiplied with: of x's shape, or one that broadcasts with it
initial | what is before the first element; 0 if not given
y | a tensor of the same shape, or one that broadcasts with it
axis | the axis; negative numbers count from the last one
axes | the axis or axes; negative numbers count from the last one
keepdims | whether axes that are reduced stay, with extent 1
dtype | the dtype of the result, as ek.float32 or by name
shape | the extents of the result
key | a key of random numbers: ek.random.key(seed), or one that was split
weight | the weights
bias | what is added, one number for each output; None adds nothing
stride | how far windows are apart: one number, or one for each axis
padding | how many zeros are added at both ends: one number, one for each axis, or pairs of before and after
dilation | how far the elements of a kernel are apart: one number, or one for each axis
reduction | "mean", "sum" or "none": what is made of the losses of all elements
indices | integers: the positions
index | integers: the positions, one for each element of the result
target | what x should be
n | how many elements
eps | a small number that keeps divisors away from 0
values | a tensor of values
k | which diagonal: 0 is the main one, positive numbers are above it
scale | what draws are multiplied with
alpha | a number to multiply with
norm | "backward", "ortho" or "forward": where the factor 1/n goes, as in NumPy
kernel_size | the extents of a window: one number, or one for each axis
value | the value to put in
mode | which way it is done; see above
b | the right side
tensors | a sequence of tensors
mask | truth values: where it holds; it broadcasts
output_size | the extents of the result
pointers | where each row begins among the stored elements, and where the last ends
p | the order of the norm
rtol | how large a difference is allowed, relative to the size of the numbers
atol | how large a difference is allowed at least
equal_nan | whether NaN counts as equal to NaN
axis0 | the first axis
axis1 | the first axis
axis2 | the second axis
groups | into how many groups the channels are divided, which do not see each other
loc | what is added to draws: their middle
ceil_mode | whether windows that reach over the end count
start | where it begins
stop | where it ends; the end itself is left out
step | how far elements are apart
low | the least number
high | the greatest number; integers stay below it
beta | a number to multiply with
causal | whether a position attends only to itself and to what is before it
offset | which diagonal: 0 is the main one, positive numbers are above it
batch | how many axes in front count examples, each of which has its own indices
s | the lengths along the axes; shorter tensors are filled with zeros
return_indices | whether the positions of what was chosen are given too
base | the number whose powers are taken
periodic | whether the window is one period of a longer one
query | what attends: … × length × dim
query_weight | weights that make queries, out × in
key_weight | weights that make keys, out × in
value_weight | weights that make values, out × in
out_weight | weights that are applied to the heads together, out × in
query_bias | what is added to queries
key_bias | what is added to keys
value_bias | what is added to values
out_bias | what is added in the end
num_heads | how many heads there are
input_dilation | how far the elements of x are moved apart, with zeros between
updates | the values that go to these positions
size | how many elements
src | the values that go to these positions
length | how many positions
margin | the distance that is wanted
correction | what is subtracted from the number of elements: 0 or 1
source | where axes are now
destination | where the axes go
interior | how many elements are put between neighbours
threshold | where the one rule ends and the other begins
lambd | how wide the part around 0 is
fill_value | the number that is everywhere
m | how many columns; as many as rows unless given
num | how many numbers
endpoint | whether stop is the last of them
ct | a cotangent of the result
output_padding | how much is added at the far end: one number, or one for each axis
lower | whether the lower triangle is meant
upper | whether the upper triangle is meant
transpose | whether the matrix is transposed
unit_diagonal | whether the diagonal is taken for ones
full_matrices | whether U and V are square
factors | both triangles in one matrix, as lu_factor gives them
pivots | the exchanges of rows, from 1 on, as lu_factor gives them
left | whether the matrix stands to the left of what is looked for
adjoint | whether the conjugate transpose of the matrix is meant
pivoted_rows.rows | how many rows there are
descending | whether the greatest comes first
stable | whether equal elements keep their order; they always do
boundaries | numbers in rising order
right | whether equal elements count as below
side | "left" or "right": before equal elements, or after them
training | whether it is done as in training
d | the distance of samples
count_include_pad | whether zeros of the padding count in the mean
divisor_override | what sums are divided by, instead of the number of elements
align_corners | whether the outermost elements, not their edges, keep their places
ignore_index | a label that counts nothing
full | whether constant terms are added
normalized_shape | the extents of the last axes, over which it is normalized
dim | the extent of the last axis
reverse | whether it begins at the end
columns | the column of each element
condition | truth values: where x is taken
re | the real part
im | the imaginary part
nan | what stands for NaN
posinf | what stands for infinity; the greatest number of the dtype unless given
neginf | what stands for minus infinity; the least number of the dtype unless given
start_axis | the first axis of those that become one
end_axis | the last axis of those that become one
repeats | how often
reps | how often along each axis
sizes | the extents of the parts, or one extent for all
shift | by how many places
indexing | "xy" or "ij": along which axis the first vector runs
negative_slope | the slope where x is negative
min_val | the least value
max_val | the greatest value
approximate | "none" or "tanh"
input | what is added to the product
space | the extents of x
kernel | the extents of the kernel
widths | ((before, after), ...) for each axis, one pair for all, or one integer
factor | a Cholesky factor
direction | a tensor of the shape of x: along what it is differentiated
compute_uv | whether U and V are computed too
ord | which norm; see above
number | an integer to fold in
extent | the extent of the axis that is indexed
wrap | whether negative positions count from the end
add | whether updates are added to what is there
largest | whether the greatest are meant, not the least
sorted | whether they come in order; they always do
q | which part, from 0 to 1
return_inverse | whether the place of each element of x is given too
return_counts | whether it is given how often each occurs
bins | how many bins
range | (least, greatest): what the bins cover
logits | logarithms of what the probabilities are in proportion to
probabilities | what is drawn in proportion to
replacement | whether one place may be drawn more than once
df | the degrees of freedom
subscripts | the axes of each operand and of the result, as "ij,jk->ik"
operands | the tensors, one for each group of letters
optimize | whether the order of products is chosen by cost
inverse | whether the sign of the exponent is turned
scale_factor | by what the extents are multiplied
grid | points (x, y) from -1 to 1
padding_mode | "zeros", "border" or "reflection": what lies outside of x
upscale_factor | how many pixels one becomes along each axis
downscale_factor | how many pixels become one along each axis
accumulate | whether values are added to what is there
num_classes | how many classes there are
padding_idx | a row that is a constant
weights | what each element counts; 1 unless given
minlength | how many elements the result has at least
delta | up to which distance the loss is a square
label_smoothing | which part of each target is spread over all classes
pos_weight | what positive targets count
gamma | how much easy examples count less
log_target | whether targets are logarithms
mu | the means
logvar | logarithms of the variances
log_input | whether x is the logarithm of the rate
var | the variances
anchor | the vectors that are compared with
positive | vectors that should be near
negative | vectors that should be far
swap | whether the nearer of anchor and positive counts
running_mean | the means of the channels so far
running_var | the variances of the channels so far
momentum | which part of the running statistics each batch replaces
unbiased | whether the new running variance is divided by n - 1 instead of n
num_groups | into how many groups the channels are divided
angles | by what pairs are turned
interleaved | whether pairs are neighbours
rows | the row of each element
dense | a matrix or a vector
other_values | the stored elements of the other matrix
other_indices | their columns
other_pointers | where each row of the other matrix begins
scaled_dot_product_attention.key | what is attended to: … × length × dim
attention_weights.key | what is attended to: … × length × dim
multi_head_attention.key | what keys are made of
scaled_dot_product_attention.value | what is taken in proportion to the attention
multi_head_attention.value | what values are made of
scaled_dot_product_attention.scale | what products of queries and keys are multiplied with; 1/√dim unless given
attention_weights.scale | what products of queries and keys are multiplied with; 1/√dim unless given
scaled_dot_product_attention.mask | truth values: who may attend to what; or numbers that are added
attention_weights.mask | truth values: who may attend to what; or numbers that are added
scaled_dot_product_attention.key_lengths | how many keys each sample has: integers, of the axes in front of heads
scaled_dot_product_attention.offsets | where sequences begin that lie one after another, and where the last ends
scaled_dot_product_attention.dropout | the probability with which a weight is left out
scaled_dot_product_attention.dropout_key | the key of random numbers that says which weights are left out
to_float8.x | the numbers to round
to_float8.format | "e4m3" or "e5m2"
from_float8.x | the bytes
from_float8.format | "e4m3" or "e5m2"
float8_matmul.x | bytes: … × terms
float8_matmul.y | bytes: outputs × terms
float8_matmul.scale | what products are multiplied with
float8_matmul.formats | those of x and of y
float8_matmul.dtype | of the result: float32, bfloat16 or float16
paged_attention.query | who attends: batch × heads × queries × dim
paged_attention.key_pages | pages of keys: pages × places × heads × dim
paged_attention.value_pages | pages of values: pages × places × heads × dim
paged_attention.table | which pages each sample has: batch × pages
paged_attention.lengths | how many keys each sample has
paged_attention.scale | what products of queries and keys are multiplied with; 1/√dim unless given
scaled_dot_product_attention.window | within how many places keys are attended to; all unless given
attention_weights.window | within how many places keys are attended to; all unless given
multi_head_attention.mask | truth values: who may attend to what; or numbers that are added
multi_head_self_attention.mask | truth values: who may attend to what; or numbers that are added
expand.shape | the shape wanted; -1 keeps an extent
reshape.shape | the shape wanted; one extent may be -1
sum_to.shape | the shape to sum to
to_dense.shape | the extents of the matrix
coo_to_csr.shape | the extents of the matrix
sparse_mm.shape | the extents of the sparse matrix
sparse_add.shape | the extents of the matrices
sparse_transpose.shape | the extents of the matrix
csr_turned.indices | the column of each stored element
to_dense.indices | the column of each stored element
sparse_mm.indices | the column of each stored element
sparse_add.indices | the column of each stored element
sparse_transpose.indices | the column of each stored element
to_dense.values | the stored elements
coo_to_csr.values | the elements
sparse_mm.values | the stored elements
sparse_add.values | the stored elements
sparse_transpose.values | the stored elements
csr_turned.columns | how many columns the matrix has
csr_rows.count | how many elements are stored
getitem.index | integers, slices, Ellipsis, None, masks, tensors of integers, or a tuple of these
setitem.index | integers, slices, Ellipsis, None, masks, tensors of integers, or a tuple of these
index_put.indices | a tuple of indices, one for each of the first axes
one_hot.indices | class labels: integers from 0
lerp.weight | how far from x to y: 0 is x, 1 is y
prelu.weight | the slope where x is negative: one, or one per channel
nll_loss.weight | what each class counts
cross_entropy.weight | what each class counts
binary_cross_entropy.weight | what each element counts
binary_cross_entropy_with_logits.weight | what each element counts
embedding.weight | the rows that are looked up
layer_norm.weight | what normalized elements are multiplied with
rms_norm.weight | what normalized elements are multiplied with
batch_norm.weight | what normalized channels are multiplied with
group_norm.weight | what normalized channels are multiplied with
instance_norm.weight | what normalized channels are multiplied with
polygamma.n | which derivative
eye.n | how many rows
tri.n | how many rows
matrix_power.n | how many factors
rot90.k | how many quarters
topk.k | how many
kthvalue.k | which one, from 1 on
local_response_norm.k | what is added to the mean square
local_response_norm.alpha | what the mean square is multiplied with
local_response_norm.beta | the power that is divided by
elu.alpha | the value that is approached far below 0, with its sign turned
celu.alpha | the value that is approached far below 0, with its sign turned
gamma.alpha | the shape of the distribution
dirichlet.alpha | the concentrations, along the last axis
focal_loss.alpha | what positive targets count
smooth_l1_loss.beta | up to which distance the loss is a square
softplus.beta | how sharp the bend is
beta.a | the first parameter of the distribution
beta.b | the second parameter of the distribution
bernoulli.p | the probability
dropout.p | the probability with which an element becomes 0
rotary_angles.offset | the first position
heaviside.values | what stands where x is 0
threshold.value | what stands where x is not above the threshold
exponential.scale | the mean of the draws
gamma.scale | what draws are multiplied with
poisson.rate | how often the event happens on average
index_add.source | the slices that are added
chunk.count | into how many parts at most
split_key.count | how many keys
multinomial.count | how many draws
searchsorted.values | what is looked for
clamp.min | the least value, a number or a tensor, or None
clamp.max | the greatest value, a number or a tensor, or None
"""

DESCRIBED: dict[str, str] = {
    name.strip(): text.strip() for name, _, text in (line.partition("|") for line in _SENTENCES.strip().splitlines())
}

TYPES = {  # of parameters that rows take as anything, because they check it themselves
    "dtype": "DType | str | None",
    "shape": "int | Sequence[int] | None",
}

ALIASES = {  # names of types within this package, spelt out
    "Value": "Tensor",
    "Numbers": "int | Sequence[int]",
    "Axes": "int | Sequence[int] | None",
    "Shape": "Sequence[int]",
    "Padding": "int | str | Sequence[int | tuple[int, int]]",
    "Number": "complex",
    "AxisPairs": "int | tuple[int | Sequence[int], int | Sequence[int]]",
    "Order": "int | float | str",
}


def described(op: Op, parameter: str) -> str:
    """What a parameter of a row means; nothing where that was not written down, which a test would see."""
    found = DESCRIBED.get(f"{op.name}.{parameter}")
    kind = str(op.signature.parameters[parameter].annotation).removesuffix(" | None")
    return found or DESCRIBED.get("axes" if parameter == "axis" and kind != "int" else parameter, "")
