/**
 * Maps diagnostics about values to the keys and lines that the operator wrote, and masks secrets in them. A key that
 * takes its value from another one (`Key.follows`) is reported under that other key, once for all that follow it.
 */
import { normalize } from 'node:path'
import { type Diagnostic, maskCredentials } from './diagnostics.ts'
import type { ResolvedKey } from './resolve.ts'

/** A diagnostic with a place of its own, as in a file that a key names, gets the line of that key in its hint. */
export function attributeDiagnostics(
  diagnostics: readonly Diagnostic[],
  keys: readonly ResolvedKey[],
): readonly Diagnostic[] {
  if (diagnostics.length === 0) return diagnostics
  const byPath = new Map(keys.map(key => [key.path, key]))
  const secrets = secretValues(keys)
  const attributed = diagnostics.map(diagnostic =>
    attributeToKey(byPath.get(diagnostic.key), withoutSecrets(secrets, diagnostic), byPath),
  )
  return [...new Map(attributed.map(diagnostic => [JSON.stringify(diagnostic), diagnostic])).values()]
}

/** Shorter values protect nothing, and occur in other words. */
const SECRET_LENGTH_MIN = 4

/** Values of keys that are not secret themselves and refer to a secret or hold credentials; as written and as paths. */
function secretValues(keys: readonly ResolvedKey[]): readonly string[] {
  const values = keys.flatMap(({ value, secret, definition }) => {
    const isHidden = typeof value === 'string' && !definition.secret && (secret || maskCredentials(value) !== value)
    return isHidden && value.length >= SECRET_LENGTH_MIN ? [value, normalize(value)] : []
  })
  // Longest first, because one value may contain another.
  return values.sort((one, other) => other.length - one.length)
}

function withoutSecrets(secrets: readonly string[], { where, expected, hint, ...rest }: Diagnostic): Diagnostic {
  const masked = (text: string): string => secrets.reduce((left, value) => left.replaceAll(value, '(set)'), text)
  return { ...rest, where: masked(where), expected: masked(expected), hint: masked(hint) }
}

function attributeToKey(
  own: ResolvedKey | undefined,
  diagnostic: Diagnostic,
  byPath: ReadonlyMap<string, ResolvedKey>,
): Diagnostic {
  if (own === undefined) return { ...diagnostic, given: maskCredentials(diagnostic.given) }
  const written = writtenKeyOf(own, byPath)
  const isSecret = own.secret || written.secret
  const where = diagnostic.where || written.where
  const isInOtherFile = written.where !== '' && where !== written.where
  const hint = hintForWrittenKey(diagnostic.hint, own.path, written.path)
  return {
    ...diagnostic,
    key: written.path,
    where,
    given: isSecret && diagnostic.given !== '' ? '(set)' : maskCredentials(diagnostic.given),
    hint: isInOtherFile ? withOrigin(written.where, isSecret, hint) : hint,
  }
}

/** The first key with a setting along the chain of followed keys; the key itself where none is set. */
function writtenKeyOf(own: ResolvedKey, byPath: ReadonlyMap<string, ResolvedKey>): ResolvedKey {
  const visited = new Set<ResolvedKey>()
  for (let key: ResolvedKey | undefined = own; key !== undefined && !visited.has(key); key = followedKey(key, byPath)) {
    if (key.where !== '') return key
    visited.add(key)
  }
  return own
}

function followedKey(
  { section, definition: { follows } }: ResolvedKey,
  byPath: ReadonlyMap<string, ResolvedKey>,
): ResolvedKey | undefined {
  return follows === '' ? undefined : byPath.get(`${follows.startsWith('.') ? section : ''}${follows}`)
}

/** Names the written key in the hint, and its neighbours too where both keys end with the same name. */
function hintForWrittenKey(hint: string, own: string, written: string): string {
  const [group, writtenGroup] = [own, written].map(path => path.slice(0, path.lastIndexOf('.') + 1))
  const haveSameName = own.slice(group!.length) === written.slice(writtenGroup!.length)
  return haveSameName ? hint.replaceAll(group!, writtenGroup!) : hint.replaceAll(own, written)
}

/** `set at` for a password, which names no file. */
function withOrigin(where: string, isSecret: boolean, hint: string): string {
  const origin = `${isSecret ? 'set' : 'named'} at ${where}`
  return hint === '' ? origin : `${origin}; ${hint}`
}
