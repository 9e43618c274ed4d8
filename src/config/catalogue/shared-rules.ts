/** Rules that several sections share: custom implementations, limits, field names, address lists, thread pools. */
import type { Rule } from '../key.ts'

type Having<N extends string, T> = Readonly<Record<N, T>>

/** For a key that takes `custom`, and the key that then names the implementation. */
export function requiredForCustom<const T extends string, const I extends string>(
  type: T,
  implementation: I,
): Rule<Having<T | I, string>> {
  return {
    keys: [type, implementation],
    must: `${implementation} is required where ${type} is custom`,
    severity: 'error',
    holds: it => it[type] !== 'custom' || it[implementation] !== '',
  }
}

/** `reason`: end of the sentence, with its punctuation. */
export function mustNotExceed<const L extends string, const G extends string>(
  lesser: L,
  greater: G,
  reason = '',
): Rule<Having<L | G, number>> {
  return {
    keys: [lesser, greater],
    must: `${lesser} must not exceed ${greater}${reason}`,
    severity: 'error',
    holds: it => it[lesser] <= it[greater],
  }
}

// RFC 9112 6, RFC 9110 7.2 and 7.6.1: fields that frame, route or forward a message.
const FRAMING =
  /^(host|content-length|transfer-encoding|(proxy-)?connection|keep-alive|te|trailer|upgrade|expect|via)$|forwarded/i

/** For a key that names a field whose value the gateway sets. */
export function mustNotBeFramingField<const N extends string>(field: N): Rule<Having<N, string>> {
  return {
    keys: [field],
    must: `${field} must not be a field that frames, routes or forwards a message`,
    severity: 'error',
    holds: it => !FRAMING.test(it[field]),
  }
}

/** For two lists of addresses of the same nodes, for events and for login, in the same order. */
export function sameLength<const E extends string, const A extends string>(
  events: E,
  logins: A,
): Rule<Having<E | A, readonly string[]>> {
  return {
    keys: [events, logins],
    must: `${events} and ${logins} must have the same length: both name the nodes in the same order`,
    severity: 'error',
    holds: it => it[events].length === it[logins].length,
  }
}

/** For a pool that starts threads beyond `core` only when its queue is full; queue length -1 is unbounded. */
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
