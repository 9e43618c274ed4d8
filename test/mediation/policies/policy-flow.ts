/** Runs the steps of a policy on a message that passes, for tests. */
import { NO_CUSTOM_FORMATS } from '../../../src/mediation/formats/custom-format.ts'
import { DEFAULT_FORMATS } from '../formats/default-formats.ts'
import { MessageFormats } from '../../../src/mediation/formats/message-formats.ts'
import type { Message } from '../../../src/mediation/message.ts'
import { fromTransfer } from '../../../src/mediation/message-transfer.ts'
import { NO_STATE, type RaisedFault } from '../../../src/mediation/worker-task.ts'
import { compiled } from '../test-sequences.ts'

const FORMATS = new MessageFormats(DEFAULT_FORMATS, NO_CUSTOM_FORMATS)

export interface GivenMessage {
  readonly type?: string
  readonly body?: string | Uint8Array
  readonly target?: string
  readonly fields?: Readonly<Record<string, string>>
  /** 0 for a request. */
  readonly status?: number
}

interface RanPolicy {
  /** Null: the message continues. */
  readonly fault: RaisedFault | null
  readonly message: Message
}

export async function runPolicy(steps: string, given: GivenMessage): Promise<RanPolicy> {
  const { type = 'application/json', body = '', target = '/a', fields = {}, status = 0 } = given
  const transferred = {
    ...{ method: 'POST', target, status, reason: '', state: NO_STATE },
    fields: Object.entries({ ...fields, 'Content-Type': type }),
    body: body === '' ? ({ kind: 'none' } as const) : ({ kind: 'bytes', bytes: Buffer.from(body) } as const),
  }
  const message = fromTransfer(transferred, FORMATS.sourceOf(transferred))
  const sequences = await compiled(steps, () => undefined)
  await sequences.runToEnd(['one'], message)
  return { fault: message.fault, message }
}
