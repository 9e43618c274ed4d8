/** Differences of two trees as JSON merge patches (RFC 7396): `null` removes a member. */
import type { Leaf, Tree } from '../../plan/dashboard-messages.ts'

interface Patch {
  readonly [name: string]: Leaf | Tree | Patch | null
}

/** The patch that makes `after` of `before`; null where they are equal. */
export function mergePatch(before: Tree, after: Tree): Patch | null {
  const changes: [string, Patch[string]][] = []
  for (const name of Object.keys(before)) if (!Object.hasOwn(after, name)) changes.push([name, null])
  for (const [name, value] of Object.entries(after)) {
    const old = Object.hasOwn(before, name) ? before[name] : undefined
    if (old === value) continue
    if (typeof old !== 'object' || typeof value !== 'object') changes.push([name, value])
    else {
      const inner = mergePatch(old, value)
      if (inner !== null) changes.push([name, inner])
    }
  }
  // Names come from operators and clients: `fromEntries` makes an own member even of `__proto__`.
  return changes.length === 0 ? null : Object.fromEntries(changes)
}
