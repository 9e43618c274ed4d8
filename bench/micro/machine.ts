/** Times the protocol state machines: the events of one exchange on both sides, and an event that is a violation. */
import { Machine, ProtocolViolation } from '../../src/protocol/machine.ts'
import { EVENT, type Event } from '../../src/protocol/states.ts'
import { time } from './timing.ts'

const PLAIN: readonly Event[] = [
  EVENT.REQUEST_BEGIN,
  EVENT.REQUEST_END,
  EVENT.RESPONSE_BEGIN,
  EVENT.RESPONSE_BODY,
  EVENT.RESPONSE_DATA,
  EVENT.RESPONSE_END,
  EVENT.REUSE,
]

const source = new Machine('source')
const target = new Machine('target')
target.advance(EVENT.CONNECTED)

time('machine: one exchange, both sides, 14 events', () => {
  for (let i = 0; i < PLAIN.length; i++) {
    source.advance(PLAIN[i]!)
    target.advance(PLAIN[i]!)
  }
})

time('machine: a protocol violation, thrown and caught', () => {
  try {
    target.advance(EVENT.RESPONSE_BEGIN)
  } catch (error) {
    if (!(error instanceof ProtocolViolation)) throw error
  }
})
