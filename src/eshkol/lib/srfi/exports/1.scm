;;; What (srfi 1) and (scheme list) export.

(export
 ;; constructors
 cons list xcons cons* make-list list-tabulate list-copy circular-list iota
 ;; predicates
 pair? null? proper-list? circular-list? dotted-list? not-pair? null-list? list=
 ;; selectors
 car cdr caar cadr cdar cddr
 caaar caadr cadar caddr cdaar cdadr cddar cdddr
 caaaar caaadr caadar caaddr cadaar cadadr caddar cadddr cdaaar cdaadr cdadar cdaddr cddaar cddadr cdddar cddddr
 list-ref first second third fourth fifth sixth seventh eighth ninth tenth car+cdr
 take drop take-right drop-right take! drop-right! split-at split-at! last last-pair
 ;; miscellaneous
 length length+ append append! concatenate concatenate! reverse reverse! append-reverse append-reverse!
 zip unzip1 unzip2 unzip3 unzip4 unzip5 count
 ;; fold, unfold, map
 map for-each fold fold-right pair-fold pair-fold-right reduce reduce-right unfold unfold-right
 append-map append-map! map! map-in-order pair-for-each filter-map
 ;; filtering, searching, deleting
 filter partition remove filter! partition! remove!
 member memq memv find find-tail any every list-index
 take-while drop-while take-while! span break span! break!
 delete delete! delete-duplicates delete-duplicates!
 ;; association lists
 assoc assq assv alist-cons alist-copy alist-delete alist-delete!
 ;; sets
 lset<= lset= lset-adjoin lset-union lset-union! lset-intersection lset-intersection!
 lset-difference lset-difference! lset-xor lset-xor! lset-diff+intersection lset-diff+intersection!
 set-car! set-cdr!)
