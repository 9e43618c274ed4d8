/** What others say of values, with the key that somebody wrote, the place where, and without what is secret. */
import { normalize } from 'node:path'
import { type Fault, masked } from '../config/fault.ts'
import type { ResolvedKey } from '../config/resolve.ts'

/**
 * A key that follows another one is nobody's: the fault is that of the key which was written, and told once for all
 * that follow it. Where the fault has a place of its own, as in a file that the key names, its remedy begins with the
 * line that led there.
 */
export function attributed(findings: readonly Fault[], keys: readonly ResolvedKey[]): readonly Fault[] {
  if (findings.length === 0) return findings
  const known = new Map(keys.map(key => [key.path, key]))
  const hidden = hiddenIn(keys)
  const told = findings.map(fault => attributedTo(known.get(fault.key), without(hidden, fault), known))
  return [...new Map(told.map(fault => [JSON.stringify(fault), fault])).values()]
}

/** Shorter ones guard nothing, and occur in other words. */
const SECRET_LENGTH_MIN = 4

/** What is no secret by its key and came from one, or holds one: names of files as they are, and as paths. */
function hiddenIn(keys: readonly ResolvedKey[]): readonly string[] {
  const values = keys.flatMap(({ value, secret, definition }) => {
    const isHidden = typeof value === 'string' && !definition.secret && (secret || masked(value) !== value)
    return isHidden && value.length >= SECRET_LENGTH_MIN ? [value, normalize(value)] : []
  })
  // What holds another one goes first.
  return values.sort((one, other) => other.length - one.length)
}

function without(hidden: readonly string[], { where, expected, remedy, ...rest }: Fault): Fault {
  const cleared = (text: string): string => hidden.reduce((left, value) => left.replaceAll(value, '(set)'), text)
  return { ...rest, where: cleared(where), expected: cleared(expected), remedy: cleared(remedy) }
}

function attributedTo(own: ResolvedKey | undefined, fault: Fault, known: ReadonlyMap<string, ResolvedKey>): Fault {
  if (own === undefined) return { ...fault, given: masked(fault.given) }
  const written = writtenFor(own, known)
  const isSecret = own.secret || written.secret
  const place = fault.where || written.where
  const isElsewhere = written.where !== '' && place !== written.where
  const remedy = reworded(fault.remedy, own.path, written.path)
  return {
    ...fault,
    key: written.path,
    where: place,
    given: isSecret && fault.given !== '' ? '(set)' : masked(fault.given),
    remedy: isElsewhere ? named(written.where, isSecret, remedy) : remedy,
  }
}

/** The key itself where nobody has set any of those that it follows. */
function writtenFor(own: ResolvedKey, known: ReadonlyMap<string, ResolvedKey>): ResolvedKey {
  const passed = new Set<ResolvedKey>()
  for (let key: ResolvedKey | undefined = own; key !== undefined && !passed.has(key); key = followedBy(key, known)) {
    if (key.where !== '') return key
    passed.add(key)
  }
  return own
}

function followedBy(
  { section, definition: { follows } }: ResolvedKey,
  known: ReadonlyMap<string, ResolvedKey>,
): ResolvedKey | undefined {
  return follows === '' ? undefined : known.get(`${follows.startsWith('.') ? section : ''}${follows}`)
}

/** Keys that stand beside it are followed alike, where the two have the same name. */
function reworded(remedy: string, own: string, written: string): string {
  const [beside, besideWritten] = [own, written].map(path => path.slice(0, path.lastIndexOf('.') + 1))
  const areAlike = own.slice(beside!.length) === written.slice(besideWritten!.length)
  return areAlike ? remedy.replaceAll(beside!, besideWritten!) : remedy.replaceAll(own, written)
}

/** A password names nothing. */
function named(where: string, isSecret: boolean, remedy: string): string {
  const line = `${isSecret ? 'set' : 'named'} at ${where}`
  return remedy === '' ? line : `${line}; ${remedy}`
}
