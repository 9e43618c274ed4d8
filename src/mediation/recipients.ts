/**
 * Lists of recipients (`<recipientlist>`): `<send>` and `<call>` send a copy of the message to each, and what follows
 * runs on each response, as on the copies of `<clone>`. Runs on workers.
 */
import { servicesOf } from './backend-calls.ts'
import { runCopies } from './copies.ts'
import { memberName, type Recipient, type RecipientsAddress } from './endpoint-plan.ts'
import { setProperties } from './endpoint-properties.ts'
import type { Expression } from './expression.ts'
import type { Evaluate } from './expression-compiler.ts'
import { MediationFault } from './mediation-fault.ts'
import type { CompileContext } from './mediator.ts'
import type { Message } from './message.ts'
import { textOf } from './value.ts'

const INVALID_DESTINATION = 102551
/** Copies run at the same time, in no order. */
const CONCURRENT = { id: '', isSequential: false }

type List = Recipient & { readonly form: { readonly address: { readonly kind: 'recipients' } & RecipientsAddress } }

/** `address`: URL of the recipient; '' where its endpoint has one. Returns as `Run` does. */
type SendCopy = (copy: Message, recipient: Recipient, address: string) => Promise<boolean>

export function isList(chosen: Recipient | null): chosen is List {
  return chosen?.form?.address.kind === 'recipients'
}

/**
 * Sends a copy to each recipient. The aggregate becomes the message; without one, the copy of the first recipient in
 * the order of the list that has not failed. Rejects with the first fault where all have failed, and with
 * MediationFault for a list without recipients.
 */
export async function sendToAll(
  message: Message,
  { name, form }: List,
  context: CompileContext,
  send: SendCopy,
): Promise<boolean> {
  const recipients = recipientsOf(message, name, form.address, context)
  if (recipients.length === 0) {
    const cause = 'the list of recipients is empty'
    throw new MediationFault({ code: INVALID_DESTINATION, message: 'Invalid destination', cause })
  }
  servicesOf(message).claimCopies(recipients.length)
  const byCopy = new Map(recipients.map(recipient => [message.copy(), recipient]))
  const run = async (copy: Message): Promise<boolean> => {
    const { recipient, address } = byCopy.get(copy)!
    try {
      setProperties(copy, form)
      return await send(copy, recipient, address)
    } catch (error) {
      // A copy whose result is needed no more has not failed.
      const cause = error instanceof MediationFault ? error.raised.cause : String(error)
      if (copy.task !== null) context.warn(`the recipient ${recipient.name} has failed: ${cause}`)
      throw error
    }
  }
  return runCopies(message, [...byCopy.keys()], run, CONCURRENT)
}

interface Addressed {
  readonly recipient: Recipient
  readonly address: string
}

function recipientsOf(
  message: Message,
  name: string,
  { members, list }: RecipientsAddress,
  context: CompileContext,
): readonly Addressed[] {
  const recipients = members.map((member, at): Recipient => {
    if (typeof member === 'string') return { name: member, form: null }
    return 'name' in member ? member : { name: memberName(name, at), form: member }
  })
  if (list === undefined) return recipients.map(recipient => ({ recipient, address: '' }))
  const [recipient] = recipients as [Recipient]
  const addresses = textOf(compiledList(list, context)(message)).split(',')
  return addresses.flatMap(text => (text.trim() === '' ? [] : [{ recipient, address: text.trim() }]))
}

const compiled = new WeakMap<Expression, Evaluate>()

function compiledList(list: Expression, { compileExpression }: CompileContext): Evaluate {
  const known = compiled.get(list) ?? compileExpression(list)
  compiled.set(list, known)
  return known
}
