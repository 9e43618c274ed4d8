/** The two protocol machines as the page draws them: the states that a side has, and every transition of its table. */
import { SOURCE, TARGET, type Table } from '../../protocol/transitions.ts'
import { EVENT_NAMES, STATE_NAMES } from '../../protocol/states.ts'

interface MachineDescription {
  readonly states: readonly string[]
  /** Pairs of states, each with all events that lead from the first to the second. */
  readonly transitions: readonly { readonly from: string; readonly to: string; readonly events: readonly string[] }[]
}

export function describeMachines(): Readonly<Record<'source' | 'target', MachineDescription>> {
  return { source: describe(SOURCE), target: describe(TARGET) }
}

function describe(table: Table): MachineDescription {
  const transitions = STATE_NAMES.flatMap(from => {
    const events = EVENT_NAMES.filter(event => table[from][event] !== undefined)
    return [...Map.groupBy(events, event => table[from][event]!)].map(([to, by]) => ({ from, to, events: by }))
  })
  const used = new Set(transitions.flatMap(({ from, to }) => [from, to]))
  return { states: STATE_NAMES.filter(state => used.has(state)), transitions }
}
