#!/usr/bin/env python
# -*- coding: utf-8 -*-
"""Doc."""
# top
import os  # os


class A:  # class A

    # before method
    @staticmethod   # deco
    def m(self, x,   # arg
          y):  # header
        """doc

          of m"""

        # first
        a = x   # trailing a

        # about if
        if x > 0:  # positive
            # inside
            a = [1,  # one
                 2]  # two
            s = """multi
   line"""  # after s
            b = 1; c = 2  # both

            # end of body
        elif x < 0:  # negative
            with open(os.devnull) as f:  # with
                # in with
                if y:  # nested
                    a = 3
                else:  # other
                    a = 4
                # tail of with
            a  =  5
        else:
            a = 6  # six
        # after if
        for i in range(3):  # loop
            # loop lead
            a  += i

            if i: a = 7  # one line
            # loop tail
        else:   # loop else
            a   = 8
        try:  # try
            z = 1
        except ValueError as e:  # handler
            if e: pass
        finally:  # fin
            y  =  2
        match x:  # match
            case 1:  # c1
                if y:
                    a = 1
            case _:   # cdef
                a   =    2
        return (a,   # keep
                y)  # end
    # after method

    def n(self): return 1 if self else 2  # n


def f(x): y = x;  return y    # untouched
def g(x): # hm
	# tab
	if x:
		y  =  1 # tabbed
	return x  # no newline
# end
