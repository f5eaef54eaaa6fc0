"""A module that a program reads and calls, and what changes of it between two calls. ``$M`` stands for the module."""

from __future__ import annotations

PARTS = '''class Layer(torch.nn.Module):
    scale = 2.0
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.factor = 1.5
    def forward(self, t):
        return t * self.weight * self.factor * self.scale
    def helper(self, t):
        return t - self.factor
class Wide(Layer):
    def forward(self, t):
        return super().forward(t) + 1
class Loud(torch.nn.Module):
    def forward(self, t):
        return torch.relu(t) if t.sum() > 0 else t * (3 if self.training else 4)
def hook(module, given, out):
    return out * TABLE["k"]
def pre_hook(module, given):
    return (given[0] + 1,)
'''
INIT = '''        self.layer = Layer()
        self.linear = torch.nn.Linear(3, 3)
        self.layers = torch.nn.ModuleList([Layer(), torch.nn.Tanh()])
        self.named = torch.nn.ModuleDict({"a": Layer(), "b": torch.nn.ReLU()})
        self.steps = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh(), Loud())
        self.norm = torch.nn.LayerNorm(3)
        self.drop = torch.nn.Dropout(0.0)
        self.batch = torch.nn.BatchNorm1d(3)
        self.weights = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(3))])
        self.table = torch.nn.ParameterDict({"a": torch.nn.Parameter(torch.ones(3))})
        self.register_buffer("buffer", torch.ones(3))
        self.register_buffer("passing", torch.ones(3) * 2, persistent=False)
        self.weight = torch.nn.Parameter(torch.ones(3) * 0.5)
        self.tensor = torch.ones(3) * 4
        self.number = 2.0
        self.settings = {"scale": 1.5, "names": ["layer", "linear"]}
        self.maybe = None
        self.act = torch.relu
        self.other = self.layer
'''
TENSORS = (
    "$M.layer($A)", "$M.linear($A)", "$M.layers[0]($A)", "$M.layers[-1]($A)", "$M.steps($A)", "$M.named['a']($A)",
    "$M.norm($A)", "$M.drop($A)", "$M.batch($A.expand(2, 3))[0]", "$A + $M.weights[0]", "$A + $M.table['a']",
    "$A * $M.buffer", "$A + $M.passing", "$A * $M.weight", "$A + $M.tensor", "$A * $M.number",
    "$A * $M.settings['scale']", "$M.act($A)", "$A if $M.maybe is None else $A + 5",
    "functools.reduce(lambda t, g: g(t), $M.layers, $A)", "sum((w for w in $M.weights), $A)",
    "sum((g($A) for g in $M.named.values()), $A)", "$A * len($M.layers)", "$A * 2 if $M.training else $A",
    "$A + sum(w.sum() for w in $M.parameters())", "$M.layer.helper($A)",
    "functools.reduce(lambda t, n: getattr($M, n)(t), $M.settings['names'], $A)",
    "$A * len(list($M.named_parameters()))", "$A * $M.linear.out_features",
    "torch.nn.functional.linear($A, $M.linear.weight)", "$A * len($M.state_dict())", "$M.layer.forward($A)",
    "$A + $M.linear.weight[0]", "$A * $M.linear.weight.shape[0]", "$A * len(list($M.modules()))",
    "$M.layers[0](t=$A)", "$M.other($A)", "$A * (2 if $M.linear.bias is None else 3)", "$A * $M.layer.scale",
    "$A * $M.norm.eps * 1e5", "$M.steps[:2]($A)", "$M.get_submodule('layer')($A)",
    "$A + $M.get_parameter('layer.weight')", "$A + sum(b.sum() for b in $M.buffers() if b.is_floating_point())",
    "$A * (1 if 'b' in $M.named else 2)", "sum((p.sum() for n, p in $M.named_parameters() if 'layer' in n), $A)",
    "$A * (2 if $M.weight.requires_grad else 3)", "$M.layers[0].weight * $A",
    "$A * (2 if $M.weight.grad is None else 3)", "$A * (2 if $M.layer is $M.other else 3)",
    "getattr($M, 'late', torch.tanh)($A)", "$M._modules['layer']($A)", "$M.steps[0].weight.sum() * $A",
    "$M.linear.__class__.forward($M.linear, $A)", "$A * $M.drop.p if $M.drop.p else $A", "$M.later($A)",
    "$M.batch.running_mean + $A", "$A * hasattr($M, 'late')",
)  # fmt: skip
PLAIN = (
    "$M.training", "len($M.layers)", "list($M.named)", "[n for n, _ in $M.named_parameters()]",
    "[n for n, _ in $M.named_buffers()]", "[n for n, _ in $M.named_children()]", "[n for n, _ in $M.named_modules()]",
    "list($M.state_dict())", "$M.number", "dict($M.settings)", "$M.maybe", "type($M.layer).__name__",
    "isinstance($M.layers[0], torch.nn.Linear)", "$M.linear.weight.shape", "$M.linear.weight.dtype",
    "$M.weight.requires_grad", "hasattr($M, 'late')", "$M.layer is $M.other", "$M.drop.p", "$M.linear.bias is None",
    "len($M.steps)", "'a' in $M.table", "$M.settings['names'][0]", "$M.batch.training", "$M.batch.momentum",
    "$M.extra", "list($M._buffers)", "[p.shape for p in $M.weights]", "$M.weight.grad is None", "$M.layer.factor",
    "all(p.requires_grad for p in $M.parameters())", "$M.linear.weight is $M.layer.weight", "len($M._forward_hooks)",
    "callable($M.act)", "repr($M.drop)",
)  # fmt: skip
CHANGES = (
    "$M.layer = Wide()", "$M.layer = torch.nn.Linear(3, 3)", "$M.layer = torch.nn.Identity()",
    "$M.layers.append(torch.nn.Tanh())", "$M.layers[0] = Wide()", "del $M.layers[-1]",
    "$M.layers = torch.nn.ModuleList([Wide()])", "$M.layers.insert(0, Loud())", "$M.named['a'] = Wide()",
    "$M.named['c'] = Loud()", "del $M.named['b']", "$M.steps.append(Layer())", "$M.steps[1] = torch.nn.ReLU()",
    "$M.steps[0], $M.steps[1] = $M.steps[1], $M.steps[0]", "$M.weights.append(torch.nn.Parameter(torch.ones(3)))",
    "$M.weights[0] = torch.nn.Parameter(torch.ones(3) * 7)", "$M.table['b'] = torch.nn.Parameter(torch.ones(3))",
    "$M.table['a'] = torch.nn.Parameter(torch.ones(3) * 5)", "$M.buffer = torch.ones(3) * 3",
    "$M.buffer = torch.ones(1)", "$M.buffer.add_(1)", "$M.passing.mul_(2)", "$M.weight.data.mul_(2)",
    "$M.weight = torch.nn.Parameter(torch.ones(3) * 9)", "$M.weight = torch.nn.Parameter(torch.ones(1))",
    "$M.weight.requires_grad_(False)", "$M.weight.requires_grad_()", "$M.weight.grad = torch.ones(3)",
    "$M.tensor = torch.ones(3)", "$M.tensor.add_(2)", "$M.tensor = torch.ones(3, requires_grad=True)",
    "$M.tensor = None", "$M.number = 2", "$M.number = 3.5", "$M.number = True", "$M.settings['scale'] = 4.0",
    "$M.settings['names'].reverse()", "$M.settings['names'].append('norm')",
    "$M.settings = {'scale': 2, 'names': []}", "$M.maybe = 1", "$M.maybe = torch.nn.Tanh()",
    "del $M.maybe\n$M.maybe = None", "$M.act = torch.tanh", "$M.act = torch.nn.Sigmoid()",
    "del $M.act\n$M.act = Loud()", "$M.eval()", "$M.train()", "$M.drop.eval()", "$M.batch.eval()",
    "$M.batch.momentum = 0.5", "$M.drop.p = 1.0", "$M.drop.p = 0.0", "$M.norm.eps = 0.1",
    "$M.layer.register_forward_hook(hook)", "$M.layer.register_forward_pre_hook(pre_hook)",
    "$M.linear.register_forward_hook(hook)", "$M.steps.register_forward_hook(hook)",
    "$M.layer._forward_hooks.clear()", "$M.linear._forward_hooks.clear()", "TABLE['k'] = 5.0",
    "$M.layer.factor = 3.0", "$M.layer.factor = 1", "$M.layer.forward = lambda t: t - 1",
    "$M.layer.__dict__.pop('forward')", "Layer.forward = lambda self, t: t * 7", "Wide.forward = Loud.forward",
    "Layer.scale = 3.0", "$M.layer.scale = 4.0", "Layer.helper = lambda self, t: t * 8", "$M.layer.__class__ = Wide",
    "$M.linear.bias = None", "$M.linear.weight.data.zero_()", "$M.linear.weight.requires_grad_(False)",
    "$M.linear.weight = torch.nn.Parameter(torch.ones(3, 3))", "$M.linear.weight.data = torch.ones(3, 3) * 2",
    "$M.linear = torch.nn.Linear(3, 3, bias=False)",
    "$M.load_state_dict({n: torch.zeros_like(v) for n, v in $M.state_dict().items()})", "$M.requires_grad_(False)",
    "$M.requires_grad_()", "$M.late = torch.sin", "del $M.late", "$M.late = Layer()",
    "$M.register_buffer('more', torch.ones(2))", "$M.add_module('more_layer', Layer())",
    "$M.register_parameter('more_weight', torch.nn.Parameter(torch.ones(2)))", "$M.other = Wide()",
    "$M.other = $M.layer", "$M.layer.weight = $M.weight", "$M.zero_grad()", "$M.double()\n$M.float()",
    "$M.linear.double()", "$M.linear.float()", "type($M).later = lambda self, t: t * 3", "type($M).extra = 4",
    "$M.later = torch.cos", "torch.nn.utils.parametrize.register_parametrization($M.linear, 'weight', Loud())",
    "torch.nn.utils.parametrize.remove_parametrizations($M.linear, 'weight')",
    "$M.linear.weight = $M.steps[0].weight", "$M.batch.running_mean.add_(1)",
    "$M.apply(lambda m: setattr(m, 'factor', 2.5))", "$M.to(torch.float32)", "torch.nn.init.ones_($M.linear.weight)",
    "$M.batch = torch.nn.Identity()", "$M.steps[2].training = False",
    "$M.layer.register_forward_hook(hook, prepend=True)",
    "$M.layer.register_forward_pre_hook(lambda m, given, named: ((given[0] * 2,), named), with_kwargs=True)",
    "$M.layers[0] = $M.layer", "$M.weight.data = torch.ones(3, dtype=torch.float64)", "$M.linear.eval()",
    "torch.nn.utils.weight_norm($M.linear)", "$M.named.pop('a')", "$M.named.update({'a': torch.nn.Tanh()})",
    "$M.steps.pop(0)", "$M.steps = torch.nn.Sequential(Loud())",
)  # fmt: skip
