/** Rules of the same shape in several sections. */
import type { Rule } from '../key.ts'

type Having<N extends string, T> = Readonly<Record<N, T>>

/** Of keys that take `custom` and, in another key, what is meant by it. */
export function customNeeds<const T extends string, const I extends string>(
  type: T,
  implementation: I,
): readonly Rule<Having<T | I, string>>[] {
  return [
    {
      keys: [type, implementation],
      must: `${implementation} is required where ${type} is custom`,
      severity: 'fault',
      holds: it => it[type] !== 'custom' || it[implementation] !== '',
    },
    {
      keys: [implementation, type],
      must: `${implementation} has no effect unless ${type} is custom`,
      severity: 'warning',
      holds: it => it[implementation] === '' || it[type] === 'custom',
    },
  ]
}

/** `reason`: what follows in the sentence, with its punctuation. */
export function mustNotExceed<const L extends string, const G extends string>(
  lesser: L,
  greater: G,
  reason = '',
): Rule<Having<L | G, number>> {
  return {
    keys: [lesser, greater],
    must: `${lesser} must not exceed ${greater}${reason}`,
    severity: 'fault',
    holds: it => it[lesser] <= it[greater],
  }
}

// RFC 9112 6, RFC 9110 7.2 and 7.6.1: fields that say where a message ends or goes, or what it came through.
const FRAMING =
  /^(host|content-length|transfer-encoding|(proxy-)?connection|keep-alive|te|trailer|upgrade|expect|via)$|forwarded/i

/** Of a key that names the field in which the gateway puts something of its own. */
export function mustNotRewrite<const N extends string>(field: N): Rule<Having<N, string>> {
  return {
    keys: [field],
    must: `${field} must not be a field that frames, routes or forwards a message`,
    severity: 'fault',
    holds: it => !FRAMING.test(it[field]),
  }
}

/** Addresses for events and for logging in are pairs: the first belongs to the first. */
export function inPairs<const E extends string, const A extends string>(
  events: E,
  logins: A,
): Rule<Having<E | A, readonly string[]>> {
  return {
    keys: [events, logins],
    must: `${events} and ${logins} must be as many: the nodes are named in the same order in both`,
    severity: 'fault',
    holds: it => it[events].length === it[logins].length,
  }
}

/** A key that another one silences. */
export function givesWay<const L extends string, const W extends string>(
  loser: L,
  winner: W,
): Rule<Having<L | W, unknown>> {
  return {
    keys: [loser, winner],
    must: `${loser} has no effect beside ${winner}, which wins`,
    severity: 'warning',
    holds: it => it[winner] === '',
  }
}

/** Of a pool that starts threads beyond `core` only when its queue is full; a length of -1 is unbounded. */
export function needsBoundedQueue<const M extends string, const C extends string, const Q extends string>(
  max: M,
  core: C,
  queue: Q,
): Rule<Having<M | C | Q, number>> {
  return {
    keys: [max, core, queue],
    must: `${max} has no effect behind an unbounded queue: bound the queue or raise the core size`,
    severity: 'warning',
    holds: it => it[queue] !== -1 || it[max] === it[core],
  }
}

/** A key that does something only while a flag is on; one that is a flag itself does nothing while it is off. */
export function needsFlag<const N extends string, const F extends string>(
  key: N,
  flag: F,
): Rule<Having<N, unknown> & Having<F, boolean>> {
  return {
    keys: [key, flag],
    must: `${key} has no effect while ${flag} is false`,
    severity: 'warning',
    holds: it => it[flag] || it[key] === false,
  }
}
