/**
 * JSON Patch (RFC 6902) with strict JSON pointers (RFC 6901): the whole patch or nothing. Tokens that name parts of
 * prototypes are refused.
 */
import { copyJson, isObject, type JsonObject, sameJson, setMember } from './json-text.ts'
import { shown } from './outcome.ts'
import { finishPatch, LEVELS_MAX, OPERATIONS_MAX, PatchCopies, PatchError } from './patch-result.ts'

type OperationName = 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test'

interface Operation {
  readonly op: OperationName
  readonly path: readonly string[]
  /** [] where the operation has none. */
  readonly from: readonly string[]
  readonly value: unknown
}

const NAMES: readonly string[] = ['add', 'remove', 'replace', 'move', 'copy', 'test']
const WITH_VALUE: readonly string[] = ['add', 'replace', 'test']
const WITH_FROM: readonly string[] = ['move', 'copy']
const PROTOTYPE_TOKENS = ['__proto__', 'constructor', 'prototype']
const INDEX = /^(?:0|[1-9][0-9]{0,9})$/

/** The patched resource; `resource` stays as it is. `patch`: a value of `readJson`. Throws PatchError. */
export function applyJsonPatch(resource: JsonObject, patch: unknown): JsonObject {
  if (!Array.isArray(patch)) throw new PatchError('patch-malformed', 'A JSON Patch is an array of operations')
  if (patch.length > OPERATIONS_MAX) throw new PatchError('patch-malformed', `More than ${OPERATIONS_MAX} operations`)
  const operations = patch.map(parseOperation)
  const document = new PatchedDocument(resource)
  for (const [at, operation] of operations.entries()) document.apply(operation, at)
  return finishPatch(resource, document.root)
}

function parseOperation(value: unknown, at: number): Operation {
  const fail = (message: string): never => {
    throw new PatchError('patch-malformed', message, at)
  }
  if (!isObject(value)) return fail('It is no object')
  const { op } = value
  if (typeof op !== 'string' || !NAMES.includes(op)) return fail(`"op" is none of ${NAMES.join(', ')}`)
  if (WITH_VALUE.includes(op) && !Object.hasOwn(value, 'value')) return fail('It has no "value"')
  const pointerOf = (name: 'path' | 'from'): readonly string[] => {
    const text = value[name]
    if (typeof text !== 'string') return fail(`It has no "${name}"`)
    const reason = pointerFault(text)
    return reason === '' ? tokensOf(text) : fail(`"${name}" ${reason}`)
  }
  const path = pointerOf('path')
  const from = WITH_FROM.includes(op) ? pointerOf('from') : []
  const isIntoItself = op === 'move' && from.length < path.length && from.every((token, i) => token === path[i])
  if (isIntoItself) return fail('A value cannot be moved into itself')
  if (path.length === 0 && op !== 'test') return fail('The resource as a whole cannot be changed')
  return { op: op as OperationName, path, from, value: value.value }
}

/** '' for a pointer. */
function pointerFault(text: string): string {
  if (text !== '' && !text.startsWith('/')) return 'does not begin with "/"'
  if (/~(?![01])/.test(text)) return 'has a "~" that is no escape'
  const tokens = tokensOf(text)
  if (tokens.length > LEVELS_MAX) return `has more than ${LEVELS_MAX} levels`
  return tokens.some(token => PROTOTYPE_TOKENS.includes(token)) ? 'has a name that no element has' : ''
}

function tokensOf(pointer: string): readonly string[] {
  return pointer
    .split('/')
    .slice(1)
    .map(token => token.replaceAll('~1', '/').replaceAll('~0', '~'))
}

class PatchedDocument {
  readonly root: unknown
  readonly #copies = new PatchCopies()
  #operation = 0

  constructor(resource: JsonObject) {
    this.root = copyJson(resource)
  }

  apply({ op, path, from, value }: Operation, at: number): void {
    this.#operation = at
    if (op === 'test') {
      if (!sameJson(this.#get(path), value)) throw this.#error('The value is not the one that is tested', path)
    } else if (op === 'add') this.#add(path, value)
    else if (op === 'copy') this.#add(path, this.#get(from))
    else if (op === 'remove') this.#remove(path)
    else if (op === 'move') {
      const moved = this.#get(from)
      if (from.length === 0) throw this.#error('The resource as a whole cannot be moved', from)
      this.#remove(from)
      this.#add(path, moved)
    } else this.#replace(path, value)
  }

  #get(path: readonly string[]): unknown {
    let value = this.root
    for (const token of path) value = this.#child(value, token, path)
    return value
  }

  /** Throws where there is none. */
  #child(parent: unknown, token: string, path: readonly string[]): unknown {
    if (Array.isArray(parent)) return parent[this.#index(parent.length - 1, token, path)]
    if (isObject(parent) && Object.hasOwn(parent, token)) return parent[token]
    throw this.#error('There is no such value', path)
  }

  #index(last: number, token: string, path: readonly string[]): number {
    if (!INDEX.test(token) || Number(token) > last) throw this.#error('There is no such item', path)
    return Number(token)
  }

  #add(path: readonly string[], value: unknown): void {
    const parent = this.#get(path.slice(0, -1))
    const token = path.at(-1)!
    const copy = this.#copies.copy(value, path.length + 1)
    if (Array.isArray(parent)) {
      parent.splice(token === '-' ? parent.length : this.#index(parent.length, token, path), 0, copy)
    } else if (isObject(parent)) setMember(parent, token, copy)
    else throw this.#error('There is no such value', path)
  }

  #remove(path: readonly string[]): void {
    const parent = this.#get(path.slice(0, -1))
    const token = path.at(-1)!
    this.#child(parent, token, path)
    if (Array.isArray(parent)) parent.splice(Number(token), 1)
    else delete (parent as JsonObject)[token]
  }

  /** The member keeps its place among the others. */
  #replace(path: readonly string[], value: unknown): void {
    const parent = this.#get(path.slice(0, -1))
    const token = path.at(-1)!
    this.#child(parent, token, path)
    const copy = this.#copies.copy(value, path.length + 1)
    if (Array.isArray(parent)) parent[Number(token)] = copy
    else setMember(parent as JsonObject, token, copy)
  }

  #error(message: string, path: readonly string[]): PatchError {
    const pointer = path.map(token => `/${token}`).join('')
    return new PatchError('patch-not-applicable', `${message} at ${shown(pointer)}`, this.#operation)
  }
}
