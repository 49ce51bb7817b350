"""Extraction with no model (MP-17): what a person plainly says about themselves, in English, Chinese and Korean.

Pure. Proposes only where it is sure: statements in the first person, in the present, that stand on their own.
Questions, suppositions, wishes, reports of what others say and anything in quotation marks propose nothing.
"""
