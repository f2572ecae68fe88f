;;; What (srfi 141) and (scheme division) export.

(export floor/ floor-quotient floor-remainder ceiling/ ceiling-quotient ceiling-remainder
        truncate/ truncate-quotient truncate-remainder round/ round-quotient round-remainder
        euclidean/ euclidean-quotient euclidean-remainder balanced/ balanced-quotient balanced-remainder)
