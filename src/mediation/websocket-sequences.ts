/**
 * Sequences that mediate WebSocket handshakes: the default ones and those that `[transport.ws]` and `[transport.wss]`
 * name. A missing or faulty one is an error: its replacement would admit every client.
 */
import type { Configuration } from '../config/catalogue.ts'
import type { Diagnostic } from '../config/diagnostics.ts'
import type { WebSocketPlan, WebSocketSequences } from '../plan/reactor-plan.ts'
import { missingSequence, type SequenceSet } from './sequence-files.ts'

type Section = Configuration['transport.ws' | 'transport.wss']

/** Sequences for the endpoints of every scheme. */
const DEFAULTS = ['dispatchSeq', 'outDispatchSeq']
/** Default values of the keys, which documented files repeat: no sequence if there is no such file. */
const DOCUMENTED = ['outflowDispatchSeq', 'outflowFaultSeq']

export function webSocketPlan(configuration: Configuration, sequences: SequenceSet): WebSocketPlan {
  return {
    ws: existing(configuration['transport.ws'], sequences),
    wss: existing(configuration['transport.wss'], sequences),
  }
}

function existing(section: Section, { files }: SequenceSet): WebSocketSequences {
  const { dispatch, fault } = namesIn(section)
  return { dispatch: files.has(dispatch) ? dispatch : '', fault: files.has(fault) ? fault : '' }
}

function namesIn(section: Section): WebSocketSequences {
  return {
    dispatch: section['sender.parameters.ws.outflow.dispatch.sequence'],
    fault: section['sender.parameters.ws.outflow.dispatch.fault.sequence'],
  }
}

/** `isStart`: there is no active sequence that a faulty file could leave in place. */
export function webSocketSequenceErrors(
  configuration: Configuration,
  sequences: SequenceSet,
  isStart: boolean,
): readonly Diagnostic[] {
  const faulty = isStart ? DEFAULTS.filter(name => sequences.fallbacks.includes(name)) : []
  const expected = 'is faulty, and decides which clients get a WebSocket'
  return [
    ...faulty.map(name => ({ where: `${name}.xml`, key: '', given: '', expected, hint: 'correct or remove it' })),
    ...missing('transport.ws', namesIn(configuration['transport.ws']), sequences),
    ...missing('transport.wss', namesIn(configuration['transport.wss']), sequences),
  ]
}

function missing(
  section: string,
  { dispatch, fault }: WebSocketSequences,
  { files, fallbacks }: SequenceSet,
): readonly Diagnostic[] {
  const names = { 'dispatch.sequence': dispatch, 'dispatch.fault.sequence': fault }
  return Object.entries(names).flatMap(([key, name]) => {
    const isNone = name === '' || (DOCUMENTED.includes(name) && !fallbacks.includes(name))
    if (isNone || files.has(name)) return []
    return [missingSequence(`${section}.sender.parameters.ws.outflow.${key}`, name)]
  })
}
