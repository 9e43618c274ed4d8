/** Common to both kinds of patches: failures, limits of the result, and elements that no patch may change. */
import { isObject, type JsonObject, sameJson, setMember } from './json-text.ts'
import type { Situation } from './situations.ts'

/** A patch that is malformed, or cannot be applied. `message` is for the client. */
export class PatchError extends Error {
  override readonly name = 'PatchError'
  readonly situation: Situation

  /** `operation`: of the patch, from 0; -1: the patch as a whole. */
  constructor(situation: Situation, message: string, operation = -1) {
    super(operation === -1 ? message : `operation ${operation + 1}: ${message}`)
    this.situation = situation
  }
}

/** Operations of one patch. */
export const OPERATIONS_MAX = 500
/** Levels of objects and arrays. */
export const LEVELS_MAX = 64
/** Values that the operations of one patch may copy: without a limit, copies of copies fill the memory. */
const COPIED_MAX = 100_000

/** Kind of a patch by the media type of its body, without parameters; undefined: 415, as for merge patches. */
export function patchKind(mediaType: string): 'json-patch' | 'fhirpath-patch' | undefined {
  if (mediaType === 'application/json-patch+json') return 'json-patch'
  return ['application/fhir+json', 'application/health+json'].includes(mediaType) ? 'fhirpath-patch' : undefined
}

/** Copies values into the result of one patch, within its limits. */
export class PatchCopies {
  #count = 0

  /** `level`: of the place where the copy will stand. Throws PatchError. */
  copy(value: unknown, level: number): unknown {
    if (++this.#count > COPIED_MAX) throw new PatchError('body-too-large', 'The patch makes too many values')
    if (level > LEVELS_MAX) throw new PatchError('patch-not-applicable', `More than ${LEVELS_MAX} levels`)
    if (Array.isArray(value)) return value.map(item => this.copy(item, level + 1))
    if (!isObject(value)) return value
    const copy: JsonObject = {}
    for (const [name, member] of Object.entries(value)) setMember(copy, name, this.copy(member, level + 1))
    return copy
  }
}

/**
 * Refuses what a patch may not change: resource type, id, version and time of the last change. Drops a generated
 * narrative that the patch has left as it was, because it tells of the old content (R4, http.html#patch).
 */
export function finishPatch(before: JsonObject, after: unknown): JsonObject {
  if (!isObject(after)) throw new PatchError('patch-not-applicable', 'The result is no resource')
  for (const name of ['resourceType', 'id']) {
    if (before[name] !== after[name]) throw new PatchError('patch-not-applicable', `A patch cannot change ${name}`)
  }
  const metas = [before.meta, after.meta].map(meta => (isObject(meta) ? meta : {}))
  for (const name of ['versionId', 'lastUpdated']) {
    // Left out is not changed: the server sets both.
    if (metas[1]![name] !== undefined && metas[0]![name] !== metas[1]![name]) {
      throw new PatchError('patch-not-applicable', `A patch cannot change meta.${name}`)
    }
  }
  const { text, ...data } = after
  const isStale =
    isObject(text) && text.status === 'generated' && sameJson(text, before.text) && !sameJson(before, after)
  return isStale ? data : after
}
