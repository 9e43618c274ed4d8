/** Names of the sequences that uses of policies become. */
import { hash } from 'node:crypto'

const DIGEST = /#[0-9a-f]{8}(?:-\d+)?$/

/**
 * The name tells policy, flow and values, whatever other uses there are: a message that is under way during a reload
 * asks for its sequences by their names. `values`: without secrets, which nobody is to find out by guessing.
 */
export function sequenceName(policy: string, flow: string, values: readonly (readonly [string, string])[]): string {
  return `${policy}#${hash('sha256', JSON.stringify([policy, flow, ...values]), 'hex').slice(0, 8)}`
}

/** The name as people read it: that of a policy without the digest. */
export function shownName(name: string): string {
  return name.replace(DIGEST, '')
}
