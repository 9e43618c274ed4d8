/** How large a document is with everything that aliases repeat in it, and what its references are. */
import type { OpenApiObject } from './open-api-document.ts'
import type { Path } from './yaml-file.ts'

/** Whoever walks through a document does so within these: aliases may repeat, or hold, what they stand in. */
const DEPTH_MAX = 100
const VALUES_MAX = 1_000_000

/** Why a document is too large to be walked through; undefined where it is not. */
export function boundFault(root: unknown): string | undefined {
  let values = 0
  let deepest = 0
  const enter = (value: unknown, depth: number): void => {
    if (++values > VALUES_MAX || typeof value !== 'object' || value === null) return
    deepest = Math.max(deepest, depth)
    if (depth > DEPTH_MAX) return
    for (const inner of Object.values(value)) {
      if (values > VALUES_MAX || deepest > DEPTH_MAX) return
      enter(inner, depth + 1)
    }
  }
  enter(root, 1)
  if (deepest > DEPTH_MAX) return `is nested more than ${DEPTH_MAX} deep`
  return values > VALUES_MAX ? `holds more than ${VALUES_MAX} values, with what aliases repeat` : undefined
}

export interface Reference {
  /** Of the object that has it. */
  readonly at: Path
  readonly ref: string
}

/** What they hold is data and refers to nothing, whatever its keys are called. */
const DATA = new Set(['example', 'examples', 'default', 'enum', 'const'])
/** Under these, keys are names that somebody chose. */
const NAMED = new Set(['properties', 'patternProperties', 'schemas', 'definitions', '$defs', 'parameters', 'responses'])

/** Of a document within the bounds. */
export function referencesOf(root: OpenApiObject): readonly Reference[] {
  const found: Reference[] = []
  const seen = new Set<object>()
  const path: (string | number)[] = []
  const enter = (value: unknown, isNamed: boolean): void => {
    if (typeof value !== 'object' || value === null || seen.has(value)) return
    seen.add(value)
    if (Array.isArray(value)) {
      for (const [place, item] of value.entries()) step(place, item, false)
      return
    }
    const { $ref: ref } = value as OpenApiObject
    if (typeof ref === 'string' && !isNamed) found.push({ at: [...path], ref })
    for (const [name, inner] of Object.entries(value)) {
      if (typeof inner !== 'object') continue
      if (isNamed || !(DATA.has(name) || name.startsWith('x-'))) step(name, inner, !isNamed && NAMED.has(name))
    }
  }
  const step = (name: string | number, value: unknown, isNamed: boolean): void => {
    path.push(name)
    enter(value, isNamed)
    path.pop()
  }
  enter(root, false)
  return found
}
