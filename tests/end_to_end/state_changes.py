"""Kinds of changes of Python state, each as the world it needs, the change, and what shows it afterwards."""

from __future__ import annotations

HEAD = """
import array, collections, contextvars, enum, functools, io, itertools, os, sys, threading, types, weakref
import numpy as np
import torch
LOG = []
"""
"""What each program begins with."""

CHANGES: dict[str, tuple[str, str, str]] = {
    "contextvar_set": ("V = contextvars.ContextVar('v', default=0)", "V.set(V.get() + 1)", "V.get()"),
    "contextvar_reset": (
        "V = contextvars.ContextVar('v', default=0); V.set(5)",
        "t = V.set(V.get() + 1); LOG.append(V.get()); V.reset(t)", "(V.get(), LOG)",
    ),
    "globals_item": ("q = 1", "globals()['q'] = q + 1", "q"),
    "globals_update": ("q = 1", "globals().update(q=q + 1)", "q"),
    "globals_new": ("", "globals()['fresh'] = 2", "globals().get('fresh')"),
    "globals_alias": ("q = 1", "g = globals(); g['q'] = g['q'] + 1", "q"),
    "globals_pop": ("q = 1", "globals().pop('q', None)", "'q' in globals()"),
    "globals_del": ("q = 1", "del globals()['q']; globals()['q'] = 7", "q"),
    "globals_setdefault": ("", "globals().setdefault('fresh', 3)", "globals().get('fresh')"),
    "object_setattr": ("class C: pass\nc = C(); c.a = 1", "object.__setattr__(c, 'a', c.a + 1)", "c.a"),
    "object_delattr": (
        "class C: pass\nc = C(); c.a = 1", "object.__delattr__(c, 'a') if hasattr(c, 'a') else None",
        "hasattr(c,'a')",
    ),
    "bound_setattr": ("class C: pass\nc = C(); c.a = 1", "c.__setattr__('a', c.a + 1)", "c.a"),
    "bound_delattr": (
        "class C: pass\nc = C(); c.a = 1", "c.__delattr__('a') if hasattr(c, 'a') else None", "hasattr(c,'a')",
    ),
    "super_setattr": (
        "class C:\n  def __setattr__(self, n, v):\n    super().__setattr__(n, v)\nc = C(); c.a = 1", "c.a = c.a + 1",
        "c.a",
    ),
    "user_setattr_object": (
        "class C:\n  def __setattr__(self, n, v):\n    object.__setattr__(self, n, v)\nc = C(); c.a = 1",
        "c.a = c.a + 1", "c.a",
    ),
    "user_setattr_dict": (
        "class C:\n  def __setattr__(self, n, v):\n    self.__dict__[n] = v\nc = C(); c.a = 1", "c.a = c.a + 1",
        "c.a",
    ),
    "module_object_setattr": (
        "class M(torch.nn.Module):\n  pass\nm = M(); m.a = 1", "object.__setattr__(m, 'a', m.a + 1)", "m.a",
    ),
    "module_setattr": ("class M(torch.nn.Module):\n  pass\nm = M(); m.a = 1", "m.a = m.a + 1", "m.a"),
    "slots_object_setattr": (
        "class C:\n  __slots__ = ('a',)\nc = C(); c.a = 1", "object.__setattr__(c, 'a', c.a + 1)", "c.a",
    ),
    "slot_descriptor": ("class C:\n  __slots__ = ('a',)\nc = C(); c.a = 1", "C.a.__set__(c, c.a + 1)", "c.a"),
    "frozen_dataclass": (
        "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass C:\n  a: int\nc = C(1)",
        "object.__setattr__(c, 'a', c.a + 1)", "c.a",
    ),
    "type_setattr": ("class C:\n  a = 1", "type.__setattr__(C, 'a', C.a + 1)", "C.a"),
    "setattr_class": ("class C:\n  a = 1", "setattr(C, 'a', C.a + 1)", "C.a"),
    "class_attr": ("class C:\n  a = 1", "C.a = C.a + 1", "C.a"),
    "class_attr_new": ("class C: pass", "C.a = 5", "getattr(C, 'a', None)"),
    "class_attr_aug": ("class C:\n  a = 1\nc = C()", "type(c).a += 1", "C.a"),
    "class_method_replaced": (
        "class C:\n  def a(self): return 1\nc=C()\ndef two(self): return 2", "C.a = two", "c.a()",
    ),
    "vars_item": ("class C: pass\nc = C(); c.a = 1", "vars(c)['a'] = c.a + 1", "c.a"),
    "dict_item": ("class C: pass\nc = C(); c.a = 1", "c.__dict__['a'] = c.a + 1", "c.a"),
    "dict_update": ("class C: pass\nc = C(); c.a = 1", "c.__dict__.update(a=c.a + 1)", "c.a"),
    "dict_update_new": ("class C: pass\nc = C(); c.a = 1", "c.__dict__.update(b=4)", "vars(c)"),
    "dict_assign": ("class C: pass\nc = C(); c.a = 1", "c.__dict__ = {'a': c.a + 1}", "c.a"),
    "class_assign": ("class C:\n  k = 1\nclass D:\n  k = 2\nc = C()", "c.__class__ = D", "c.k"),
    "module_dict_item": ("class M(torch.nn.Module):\n  pass\nm = M(); m.a = 1", "m.__dict__['a'] = m.a + 1", "m.a"),
    "module_buffers_item": (
        "class M(torch.nn.Module):\n  pass\nm = M(); m.register_buffer('b', torch.ones(2))",
        "m._buffers['b'] = m._buffers['b'] + 1", "m.b",
    ),
    "pymodule_attr": ("import types as _t\nmod = _t.ModuleType('mm'); mod.a = 1", "mod.a = mod.a + 1", "mod.a"),
    "pymodule_setattr": (
        "import types as _t\nmod = _t.ModuleType('mm'); mod.a = 1", "setattr(mod, 'a', mod.a + 1)", "mod.a",
    ),
    "pymodule_object_setattr": (
        "import types as _t\nmod = _t.ModuleType('mm'); mod.a = 1", "object.__setattr__(mod, 'a', mod.a + 1)",
        "mod.a",
    ),
    "pymodule_dict": (
        "import types as _t\nmod = _t.ModuleType('mm'); mod.a = 1", "mod.__dict__['a'] = mod.a + 1", "mod.a",
    ),
    "func_defaults": ("def g(x, k=1): return k", "g.__defaults__ = (g.__defaults__[0] + 1,)", "g.__defaults__"),
    "func_kwdefaults": (
        "def g(x, *, k=1): return k", "g.__kwdefaults__ = {'k': g.__kwdefaults__['k'] + 1}", "g.__kwdefaults__",
    ),
    "func_kwdefaults_item": (
        "def g(x, *, k=1): return k", "g.__kwdefaults__['k'] = g.__kwdefaults__['k'] + 1", "g.__kwdefaults__",
    ),
    "func_code": ("def g(): return 1\ndef h(): return 2", "g.__code__ = h.__code__", "g()"),
    "func_attr": ("def g(): return 1\ng.n = 0", "g.n = g.n + 1", "g.n"),
    "func_attr_aug": ("def g(): return 1\ng.n = 0", "g.n += 1", "g.n"),
    "func_dict": ("def g(): return 1\ng.n = 0", "g.__dict__['n'] = g.n + 1", "g.n"),
    "func_defaults_used": ("def g(k=1): return k", "g.__defaults__ = (g() + 1,); x = x + g()", "g.__defaults__"),
    "func_code_used": (
        "def g(): return 1\ndef h(): return 2", "x = x + g(); g.__code__ = h.__code__; x = x + g()", "g()",
    ),
    "cell": (
        "def _mk():\n  n = 0\n  def get(): return n\n  return get\nget = _mk()",
        "get.__closure__[0].cell_contents = get() + 1", "get()",
    ),
    "nonlocal": (
        "def _mk():\n  n = 0\n  def inc():\n    nonlocal n\n    n = n + 1\n  def get(): return n\n"
        "  return inc, get\ninc, get = _mk()",
        "inc()", "get()",
    ),
    "cached_property": (
        "class C:\n  n = 0\n  @functools.cached_property\n  def p(self):\n    C.n = C.n + 1\n    return 5\n"
        "c = C()",
        "x = x + c.p", "(C.n, dict(vars(c)))",
    ),
    "cached_property_tensor": (
        "class C:\n  @functools.cached_property\n  def p(self):\n    LOG.append(1)\n"
        "    return torch.ones(2) * 5\nc = C()",
        "x = x + c.p", "(LOG, dict(vars(c)))",
    ),
    "sys_modules": ("", "sys.modules['zz_fake'] = torch", "sys.modules.pop('zz_fake', None) is not None"),
    "sys_path": ("", "sys.path.append('zz')", "[sys.path.remove('zz') for p in list(sys.path) if p == 'zz']"),
    "environ": ("", "os.environ['ZZ'] = '1'", "os.environ.pop('ZZ', None)"),
    "putenv": ("", "os.putenv('ZZ', '1')", "0"),
    "environ_update": ("", "os.environ.update(ZZ='1')", "os.environ.pop('ZZ', None)"),
    "environ_pop": ("os.environ['ZZ'] = '2'", "os.environ.pop('ZZ', None)", "os.environ.get('ZZ')"),
    "environ_alias": ("from os import environ", "environ['ZZ'] = '1'", "os.environ.pop('ZZ', None)"),
    "thread_local": ("L = threading.local(); L.a = 1", "L.a = L.a + 1", "L.a"),
    "thread_local_new": ("L = threading.local()", "L.b = 4", "vars(L)"),
    "weakset": ("class C: pass\nc = C(); W = weakref.WeakSet()", "W.add(c)", "len(W)"),
    "weakkeydict": (
        "class C: pass\nc = C(); W = weakref.WeakKeyDictionary()", "W[c] = W.get(c, 0) + 1",
        "dict(W)[c] if len(W) else None",
    ),
    "weakvaldict": ("class C: pass\nc = C(); W = weakref.WeakValueDictionary()", "W['a'] = c", "'a' in W"),
    "array": ("A = array.array('i', [1, 2])", "A[0] = A[0] + 1", "A.tolist()"),
    "array_append": ("A = array.array('i', [1, 2])", "A.append(3)", "A.tolist()"),
    "array_iadd": ("A = array.array('i', [1, 2])", "global A\n_A = A\n_A += array.array('i', [3])", "A.tolist()"),
    "bytearray": ("B = bytearray(b'ab')", "B[0] = B[0] + 1", "bytes(B)"),
    "bytearray_extend": ("B = bytearray(b'ab')", "B.extend(b'c')", "bytes(B)"),
    "bytearray_iadd": ("B = bytearray(b'ab')", "b = B; b += b'c'", "bytes(B)"),
    "memoryview": ("B = bytearray(b'ab'); M = memoryview(B)", "M[0] = M[0] + 1", "bytes(B)"),
    "userdict": ("U = collections.UserDict(a=1)", "U['a'] = U['a'] + 1", "dict(U)"),
    "userdict_update": ("U = collections.UserDict(a=1)", "U.update(b=2)", "dict(U)"),
    "userlist": ("U = collections.UserList([1])", "U.append(2)", "list(U)"),
    "counter": ("U = collections.Counter()", "U['a'] += 1", "dict(U)"),
    "counter_update": ("U = collections.Counter()", "U.update(['a'])", "dict(U)"),
    "ordered": ("U = collections.OrderedDict(a=1, b=2)", "U.move_to_end('a')", "list(U)"),
    "chainmap": ("D = {'a': 1}; U = collections.ChainMap(D)", "U['a'] = U['a'] + 1", "D"),
    "deque": ("U = collections.deque([1, 2])", "U.rotate(1)", "list(U)"),
    "defaultdict": ("U = collections.defaultdict(int)", "U['a'] += 1", "dict(U)"),
    "numpy_item": ("N = np.zeros(2)", "N[0] = N[0] + 1", "N.tolist()"),
    "numpy_iadd": ("N = np.zeros(2)", "n = N; n += 1", "N.tolist()"),
    "numpy_fill": ("N = np.zeros(2)", "N.fill(3)", "N.tolist()"),
    "numpy_out": ("N = np.zeros(2)", "np.add(N, 1, out=N)", "N.tolist()"),
    "numpy_copyto": ("N = np.zeros(2)", "np.copyto(N, 4.0)", "N.tolist()"),
    "numpy_sort": ("N = np.array([2., 1.])", "N.sort()", "N.tolist()"),
    "numpy_view": ("N = np.zeros(2); V = N[:1]", "V[0] = V[0] + 1", "N.tolist()"),
    "namespace": ("S = types.SimpleNamespace(a=1)", "S.a = S.a + 1", "S.a"),
    "enum_attr": ("class E(enum.Enum):\n  A = 1", "E.A.extra = 3", "getattr(E.A, 'extra', None)"),
    "file_write": (
        "import tempfile; P = tempfile.mktemp()", "open(P, 'a').write('a')", "os.path.exists(P) and open(P).read()",
    ),
    "file_with": (
        "import tempfile; P = tempfile.mktemp()", "with open(P, 'a') as fh:\n  fh.write('a')",
        "os.path.exists(P) and open(P).read()",
    ),
    "file_open": ("import tempfile; F = open(tempfile.mktemp(), 'w')", "F.write('a')", "F.tell()"),
    "print_file": ("F = io.StringIO()", "print('a', file=F)", "F.getvalue()"),
    "pathlib": ("import tempfile, pathlib; P = pathlib.Path(tempfile.mktemp())", "P.write_text('a')", "P.exists()"),
    "os_mkdir": ("import tempfile; P = tempfile.mktemp()", "os.makedirs(P, exist_ok=True)", "os.path.exists(P)"),
    "os_remove": (
        "import tempfile; P = tempfile.mktemp(); open(P, 'w').close()", "os.path.exists(P) and os.remove(P)",
        "os.path.exists(P)",
    ),
    "torch_save": ("import tempfile; P = tempfile.mktemp()", "torch.save(3, P)", "os.path.exists(P)"),
    "json_dump": ("import json; F = io.StringIO()", "json.dump([1], F)", "F.getvalue()"),
    "pickle_dump": ("import pickle; F = io.BytesIO()", "pickle.dump([1], F)", "F.getvalue()"),
    "stringio": ("F = io.StringIO()", "F.write('a')", "F.getvalue()"),
    "stringio_bound": ("F = io.StringIO(); w = F.write", "w('a')", "F.getvalue()"),
    "bytesio": ("F = io.BytesIO()", "F.write(b'a')", "F.getvalue()"),
    "list_iter": ("I = iter([1,2,3,4,5,6,7,8,9,10,11,12,13])", "x = x + next(I)", "I.__length_hint__()"),
    "count": ("I = itertools.count(1)", "x = x + next(I)", "repr(I)"),
    "heapq": ("import heapq\nH = [3, 4]", "heapq.heappush(H, 1)", "H"),
    "bisect": ("import bisect\nH = [3, 4]", "bisect.insort(H, 1)", "H"),
    "random_shuffle": ("import random\nH = [3, 4]", "random.shuffle(H)", "H"),
    "operator_setitem": ("import operator\nH = [3, 4]", "operator.setitem(H, 0, H[0] + 1)", "H"),
    "operator_delitem": ("import operator\nH = [3, 4, 5, 6, 7, 8, 9, 10]", "operator.delitem(H, 0)", "H"),
    "operator_iadd": ("import operator\nH = [3, 4]", "operator.iadd(H, [1])", "H"),
    "operator_methodcaller": ("import operator\nH = [3, 4]", "operator.methodcaller('append', 1)(H)", "H"),
    "operator_ior": ("import operator\nH = {3, 4}", "operator.ior(H, {1})", "H"),
    "operator_concat": ("import operator\nH = [3, 4]", "operator.iconcat(H, [1])", "H"),
    "map_append": ("H = [3, 4]", "list(map(H.append, [1]))", "H"),
    "sorted_key_effect": (
        "H = [3, 4]", "sorted([1, 2], key=H.append) if False else None; list(filter(H.append, [1]))", "H",
    ),
    "any_effect": ("H = [3, 4]", "any(H.append(i) for i in [1])", "H"),
    "reduce_effect": ("H = [3, 4]", "functools.reduce(lambda a, b: H.append(b), [1, 2])", "H"),
    "deque_extend_map": ("H = [3, 4]", "collections.deque(map(H.append, [1]), maxlen=0)", "H"),
    "partial_append": ("H = [3, 4]\np = functools.partial(H.append, 1)", "p()", "H"),
    "dict_fromkeys": ("H = {}", "H.update(dict.fromkeys(['a'], 1))", "H"),
    "dict_ior": ("H = {}", "h = H; h |= {'a': 1}", "H"),
    "set_ior": ("H = set()", "h = H; h |= {1}", "H"),
    "list_slice_del": ("H = [1,2,3]", "H[:] = H + [1]", "H"),
    "list_init": ("H = [1,2,3]", "list.__init__(H, [4])", "H"),
    "setstate": (
        "class C:\n  def __setstate__(self, s): self.__dict__.update(s)\nc = C(); c.a = 1",
        "c.__setstate__({'a': c.a + 1})", "c.a",
    ),
    "getattribute_counter": (
        "class C:\n  n = 0\n  def __getattr__(self, name):\n    C.n += 1\n    return 3\nc = C()", "x = x + c.zz",
        "C.n",
    ),
    "descriptor": (
        "class D:\n  def __init__(self): self.n = 0\n  def __get__(self, o, c):\n    self.n += 1\n    return 3\n"
        "class C:\n  d = D()\nc = C()",
        "x = x + c.d", "C.__dict__['d'].n",
    ),
    "descriptor_set": (
        "class D:\n  def __set__(self, o, v): o.__dict__['_d'] = v\n"
        "  def __get__(self, o, c): return o.__dict__.get('_d', 0)\nclass C:\n  d = D()\nc = C()",
        "c.d = c.d + 1", "c.d",
    ),
    "property_set": (
        "class C:\n  _a = 0\n  @property\n  def a(self): return self._a\n  @a.setter\n"
        "  def a(self, v): self._a = v\nc = C()",
        "c.a = c.a + 1", "c.a",
    ),
    "classmethod_state": ("class C:\n  n = 0\n  @classmethod\n  def inc(cls): cls.n += 1", "C.inc()", "C.n"),
    "metaclass_prop": (
        "class Me(type):\n  def __setattr__(cls, n, v): type.__setattr__(cls, n, v)\nclass C(metaclass=Me):\n"
        "  a = 1",
        "C.a = C.a + 1", "C.a",
    ),
    "singledispatch": ("@functools.singledispatch\ndef g(v): return 1", "g.register(int, lambda v: 2)", "g(3)"),
    "functools_wraps": ("def a(): 'doc'\ndef b(): pass", "functools.update_wrapper(b, a)", "b.__doc__"),
    "lock": ("L = threading.Lock()", "L.locked() or L.acquire()", "L.locked()"),
    "event": ("E = threading.Event()", "E.set()", "E.is_set()"),
    "queue": ("import queue\nQ = queue.Queue()", "Q.put(1)", "Q.qsize()"),
    "simplequeue": ("import queue\nQ = queue.SimpleQueue()", "Q.put(1)", "Q.qsize()"),
    "gc": ("import gc", "gc.disable()", "(gc.isenabled(), gc.enable())[0]"),
    "recursionlimit": (
        "R = sys.getrecursionlimit()", "sys.setrecursionlimit(sys.getrecursionlimit() + 1)",
        "(sys.getrecursionlimit() - R)",
    ),
    "np_seed": ("", "np.random.seed(3)", "0"),
    "random_seed": ("import random", "random.seed(3)", "0"),
    "logging_level": (
        "import logging\nLG = logging.getLogger('zzq'); LG.setLevel(10)", "LG.setLevel(LG.level + 1)", "LG.level",
    ),
    "logging_handler": (
        "import logging\nLG = logging.getLogger('zzr'); LG.handlers.clear()", "LG.addHandler(logging.NullHandler())",
        "len(LG.handlers)",
    ),
    "warnings_filter": ("import warnings", "warnings.simplefilter('ignore', ResourceWarning)", "0"),
    "decimal_ctx": (
        "import decimal", "decimal.getcontext().prec = 7",
        "(decimal.getcontext().prec, setattr(decimal.getcontext(), 'prec', 28))[0]",
    ),
    "torch_default_dtype": (
        "", "torch.set_default_dtype(torch.float64)",
        "(torch.get_default_dtype(), torch.set_default_dtype(torch.float32))[0]",
    ),
    "torch_num_threads": ("", "torch.set_num_threads(1)", "0"),
    "torch_printoptions": (
        "", "torch.set_printoptions(precision=2)",
        "(torch._tensor_str.PRINT_OPTS.precision, torch.set_printoptions(precision=4))[0]",
    ),
    "torch_backend_flag": (
        "", "torch.backends.cudnn.benchmark = True",
        "(torch.backends.cudnn.benchmark, setattr(torch.backends.cudnn, 'benchmark', False))[0]",
    ),
    "torch_deterministic": (
        "", "torch.use_deterministic_algorithms(True)",
        "(torch.are_deterministic_algorithms_enabled(), torch.use_deterministic_algorithms(False))[0]",
    ),
    "torch_matmul_prec": (
        "", "torch.set_float32_matmul_precision('high')",
        "(torch.get_float32_matmul_precision(), torch.set_float32_matmul_precision('highest'))[0]",
    ),
    "exec_global": ("q = 1", "exec('q = q + 1', globals())", "q"),
    "exec_obj": ("class C: pass\nc = C(); c.a = 1", "exec('c.a = c.a + 1')", "c.a"),
    "import_in": ("sys.modules.pop('this_is_mod', None)", "import colorsys", "0"),
    "generator_state": (
        "def _g():\n  n = 0\n  while True:\n    n += 1\n    yield n\nG = _g()", "x = x + next(G)",
        "repr(G.gi_frame.f_locals)",
    ),
    "lru_cache": (
        "@functools.lru_cache\ndef g(k):\n  LOG.append(k)\n  return k + 1", "x = x + g(2)", "(LOG, g.cache_info())",
    ),
    "list_of_obj": ("class C: pass\nc = C(); c.a = 1; cs = [c]", "cs[0].a += 1", "c.a"),
    "namedtuple_list": ("T = collections.namedtuple('T', 'a'); t = T([1])", "t.a.append(2)", "t"),
    "slotted_dataclass": (
        "import dataclasses\n@dataclasses.dataclass(slots=True)\nclass C:\n  a: int\nc = C(1)", "c.a += 1", "c.a",
    ),
    "dict_sub": ("class D(dict): pass\nd = D(a=1)", "dict.__setitem__(d, 'a', d['a'] + 1)", "dict(d)"),
    "dict_sub_setitem": (
        "class D(dict):\n  def __setitem__(self, k, v): super().__setitem__(k, v)\nd = D(a=1)",
        "d['a'] = d['a'] + 1", "dict(d)",
    ),
    "list_sub_append": (
        "class D(list):\n  def append(self, v): super().append(v)\nd = D([1])", "d.append(2)", "list(d)",
    ),
    "list_sub_attr": ("class D(list): pass\nd = D([1]); d.n = 0", "d.n += 1; d.append(1)", "(list(d), d.n)"),
    "set_method_unbound": ("d = {1}", "set.add(d, 2)", "d"),
    "exception_attr": ("e = ValueError('a'); e.n = 0", "e.n += 1", "e.n"),
    "exception_note": ("e = ValueError('a')", "e.add_note('z')", "len(getattr(e, '__notes__', []))"),
    "exception_args": ("e = ValueError('a')", "e.args = (*e.args, 'b')", "e.args"),
    "tensor_attr": ("t = torch.ones(2); t.n = 0", "t.n = t.n + 1", "t.n"),
    "tensor_requires_grad": ("t = torch.ones(2)", "t.requires_grad_(True)", "t.requires_grad"),
    "tensor_grad_set": ("t = torch.ones(2, requires_grad=True)", "t.grad = torch.ones(2)", "t.grad"),
    "param_replace": ("m = torch.nn.Linear(2, 2)", "m.weight = torch.nn.Parameter(torch.ones(2, 2))", "0"),
    "module_train": ("m = torch.nn.Linear(2, 2)", "m.train(not m.training)", "m.training"),
    "module_training_attr": ("m = torch.nn.Linear(2, 2)", "m.training = False", "m.training"),
    "register_hook": (
        "m = torch.nn.Linear(2, 2)", "m.register_forward_hook(lambda *a: None)", "len(m._forward_hooks)",
    ),
    "register_buffer": ("m = torch.nn.Linear(2, 2)", "m.register_buffer('b', torch.ones(1))", "hasattr(m, 'b')"),
    "add_module": ("m = torch.nn.Sequential()", "m.add_module('b', torch.nn.ReLU())", "len(m)"),
    "requires_grad_param": ("m = torch.nn.Linear(2, 2)", "m.weight.requires_grad_(False)", "m.weight.requires_grad"),
    "requires_grad_attr": ("m = torch.nn.Linear(2, 2)", "m.weight.requires_grad = False", "m.weight.requires_grad"),
}  # fmt: skip
"""By name: statements of the module, those of the function, an expression for what they have changed."""

__all__ = ["CHANGES", "HEAD"]
