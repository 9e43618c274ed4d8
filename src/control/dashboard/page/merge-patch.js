/**
 * Applies a JSON merge patch (RFC 7396) to a tree in place. Names come from operators and clients, so trees have no
 * prototype: a member `__proto__` is a member like any other.
 */
export function applyPatch(tree, patch) {
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete tree[name]
    else if (typeof value !== 'object') tree[name] = value
    else tree[name] = applyPatch(isTree(tree[name]) ? tree[name] : Object.create(null), value)
  }
  return tree
}

function isTree(value) {
  return typeof value === 'object' && value !== null
}
