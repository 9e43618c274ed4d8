/**
 * Sequences that decide who gets a WebSocket. Beside the default ones `[transport.ws]` and `[transport.wss]` name some
 * for their endpoints. None of them may be lacking in silence: what stood in its place would let everybody pass.
 */
import type { Configuration } from '../config/catalogue.ts'
import type { Fault } from '../config/fault.ts'
import type { SocketPlan, SocketSequences } from '../plan.ts'
import { noSuchSequence, type SequenceSet } from './sequence-files.ts'

type Section = Configuration['transport.ws' | 'transport.wss']

const ALWAYS_ASKED = ['dispatchSeq', 'outDispatchSeq']
/** What the keys are by default, and in many files by name; without a file it is none. */
const DOCUMENTED = ['outflowDispatchSeq', 'outflowFaultSeq']

export function socketPlan(configuration: Configuration, sequences: SequenceSet): SocketPlan {
  return {
    ws: named(configuration['transport.ws'], sequences),
    wss: named(configuration['transport.wss'], sequences),
  }
}

function named(section: Section, { files }: SequenceSet): SocketSequences {
  const { dispatch, fault } = namesIn(section)
  return { dispatch: files.has(dispatch) ? dispatch : '', fault: files.has(fault) ? fault : '' }
}

function namesIn(section: Section): SocketSequences {
  return {
    dispatch: section['sender.parameters.ws.outflow.dispatch.sequence'],
    fault: section['sender.parameters.ws.outflow.dispatch.fault.sequence'],
  }
}

/** `isStart`: nothing is in force that could stay in the place of what is faulty. */
export function missingSocketSequences(
  configuration: Configuration,
  sequences: SequenceSet,
  isStart: boolean,
): readonly Fault[] {
  const faulty = isStart ? ALWAYS_ASKED.filter(name => sequences.kept.includes(name)) : []
  const expected = 'is faulty, and decides who gets a WebSocket'
  return [
    ...faulty.map(name => ({ where: `${name}.xml`, key: '', given: '', expected, remedy: 'correct or remove it' })),
    ...missing('transport.ws', namesIn(configuration['transport.ws']), sequences),
    ...missing('transport.wss', namesIn(configuration['transport.wss']), sequences),
  ]
}

function missing(owner: string, { dispatch, fault }: SocketSequences, { files, kept }: SequenceSet): readonly Fault[] {
  const names = { 'dispatch.sequence': dispatch, 'dispatch.fault.sequence': fault }
  return Object.entries(names).flatMap(([key, name]) => {
    const isNone = name === '' || (DOCUMENTED.includes(name) && !kept.includes(name))
    if (isNone || files.has(name)) return []
    return [noSuchSequence(`${owner}.sender.parameters.ws.outflow.${key}`, name)]
  })
}
