/**
 * `<clone>`: runs a sequence, an endpoint or both on a copy of the message for each target. What follows up to
 * `<aggregate>` runs on each copy. Copies that no aggregate gathers while the message goes on run in the background.
 */
import type { XmlElement } from '../../config/xml.ts'
import { applyFormat, hasDestination, sendOn, servicesOf } from '../backend-calls.ts'
import { runCopies, runInBackground } from '../copies.ts'
import { DESTINATION, OWN_ENDPOINT, type SequenceEndpoint } from '../endpoint-plan.ts'
import { type CompileContext, mediator, type Run } from '../mediator.ts'
import type { Message } from '../message.ts'
import type { SequenceParser } from '../sequence-parser.ts'
import type { Branch, MediatorPlan } from '../sequence-plan.ts'

/** The branch and the endpoint that a copy goes through, in this order. */
export interface CopyTarget extends Branch {
  readonly endpoint: SequenceEndpoint | null
  /** Destination of the copy; '' for that of the message. */
  readonly to: string
  /** SOAPAction of the copy; left out: that of the message. */
  readonly soapAction?: string
}

/** Common to the mediators that make copies. */
export interface CopySettings {
  /** By which an `<aggregate>` names its copies; '' for any. */
  readonly id: string
  readonly isSequential: boolean
  readonly continuesParent: boolean
  /** The mediators up to `<aggregate>`; empty without one. */
  readonly gathers: readonly MediatorPlan[]
}

interface CloneSettings extends CopySettings {
  readonly targets: readonly CopyTarget[]
}

export const COPY_ATTRIBUTES = ['id', 'sequential', 'continueParent']
const TARGETS_MAX = 100

export const clone = mediator<CloneSettings>({
  name: 'clone',
  attributes: COPY_ATTRIBUTES,
  elements: ['target'],

  parse(element, parser) {
    const settings = parseCopies(element, parser)
    const targets = element.children.map(child => parseTarget(child, parser))
    if (targets.length === 0) return parser.error(element, '', 'has no target', 'add <target>')
    if (targets.length > TARGETS_MAX) return parser.error(element, '', `has more than ${TARGETS_MAX} targets`, 'divide')
    if (settings === undefined || targets.includes(undefined)) return undefined
    return { ...settings, targets: targets as readonly CopyTarget[] }
  },

  needs: () => 'worker',

  compile({ targets, ...settings }, context) {
    const runs = targets.map(target => compileTarget(target, settings.gathers, context))
    const background = runs.map(run => context.define(run))
    return async message => {
      servicesOf(message).claimCopies(runs.length)
      const copies = targets.map(target => copyTo(message, target))
      if (runsInBackground(settings, targets)) {
        for (const [at, copy] of copies.entries()) await runInBackground([copy], background[at]!)
        return true
      }
      const runOf = new Map(copies.map((copy, at) => [copy, runs[at]!]))
      return runCopies(message, copies, copy => runOf.get(copy)!(copy), settings)
    }
  },
})

export function copyTo(message: Message, { to, soapAction }: Pick<CopyTarget, 'to' | 'soapAction'>): Message {
  const copy = message.copy()
  if (to !== '') copy.to = to
  if (soapAction !== undefined) copy.set('transport', 'SOAPAction', `"${soapAction}"`)
  return copy
}

/** The message goes on, and nothing gathers its copies. */
export function runsInBackground({ continuesParent, gathers }: CopySettings, targets: readonly CopyTarget[]): boolean {
  return continuesParent && gathers.length === 0 && !targets.some(({ steps }) => holdsAggregate(steps))
}

function holdsAggregate(steps: readonly MediatorPlan[]): boolean {
  return steps.some(({ mediator: name, settings }) => {
    const { gathers = [] } = settings as Partial<CopySettings>
    return name === 'aggregate' || (name === 'call' && holdsAggregate(gathers))
  })
}

export function parseCopies(element: XmlElement, parser: SequenceParser): CopySettings | undefined {
  const isSequential = parser.flag(element, 'sequential')
  const continuesParent = parser.flag(element, 'continueParent')
  if (isSequential === undefined || continuesParent === undefined) return undefined
  return { id: element.attribute('id'), isSequential, continuesParent, gathers: [] }
}

/** `<target>`: undefined after an error. */
export function parseTarget(element: XmlElement, parser: SequenceParser): CopyTarget | undefined {
  parser.checkAttributes(element, ['to', 'soapAction', 'sequence', 'endpoint'])
  parser.checkElements(element, ['sequence', 'endpoint'])
  const key = element.attribute('sequence')
  if (key !== '') parser.calls.add(key)
  const sequence = parser.only(element, 'sequence')
  const inline = parser.only(element, 'endpoint')
  if (key !== '' && sequence !== undefined) {
    return parser.error(sequence, '', 'is given twice', 'remove it, or the attribute sequence')
  }
  const name = element.attribute('endpoint')
  const named = name === '' ? null : parser.use({ name, form: null, takesOne: true })
  const endpoint = inline === undefined ? named : parser.endpoint(inline)
  if (endpoint === undefined) return undefined
  if (key === '' && sequence === undefined && endpoint === null) {
    return parser.error(element, '', 'has nothing to run', 'add <sequence> or <endpoint>')
  }
  const steps = sequence === undefined ? [] : parser.mediators(sequence.children)
  // For a `<send>` that names no endpoint.
  parser.use(DESTINATION)
  const target = { key, steps, endpoint, to: element.attribute('to') }
  return element.has('soapAction') ? { ...target, soapAction: element.attribute('soapAction') } : target
}

/**
 * Runs a target on a copy, and what gathers the copies. `gathers`: empty for nothing, so that the response to a copy is
 * that of the message; null where the caller takes the response.
 */
export function compileTarget(
  target: CopyTarget,
  gathers: CopySettings['gathers'] | null,
  context: CompileContext,
): Run {
  const { endpoint } = target
  const run = context.compileBranch(target)
  const gather = gathers === null ? () => true : gathers.length === 0 ? null : context.compileAll(gathers)
  return async copy => {
    copy.isSentByCopier = true
    const goesOn = await run(copy)
    copy.isSentByCopier = false
    const name = goesOn ? (endpoint?.name ?? '') : sentTo(copy)
    if (name !== '') {
      if (goesOn) applyFormat(copy, endpoint!.form)
      if (!(await sendCopy(copy, name, context))) return false
      const services = servicesOf(copy)
      if (gather === null && services.flow === 'request') return services.respond(copy)
      if (gather === null && !goesOn) {
        copy.outcome = 'responded'
        return false
      }
    } else if (!goesOn) return false
    return gather === null ? true : gather(copy)
  }
}

/**
 * Sends a copy, which becomes the response. Where the endpoint fails, the onError of its `<send>` runs and may send it
 * to another one. Returns false where the copy gets no response.
 */
async function sendCopy(copy: Message, name: string, context: CompileContext): Promise<boolean> {
  for (let endpoint = name; endpoint !== ''; endpoint = sentTo(copy)) {
    copy.outcome = 'ended'
    copy.endpoint = ''
    try {
      copy.becomeResponse(await sendOn(copy, { name: endpoint }))
      return true
    } catch (error) {
      await context.handleFailure(copy, error)
      if (copy.fault !== null) throw error
    }
  }
  return false
}

/** The endpoint to which `<send>` sends a copy; '': the copy is not sent by itself. */
function sentTo(copy: Message): string {
  if (copy.outcome !== 'sent') return ''
  if (copy.endpoint !== '' || copy.isResponse) return copy.endpoint
  if (hasDestination(copy)) return DESTINATION.name
  const { own, gathers } = servicesOf(copy)
  // The flow itself sends an only copy, so that its response streams.
  const isOnly = !gathers && copy.gathering?.size === 1
  return own === 0 || isOnly ? '' : OWN_ENDPOINT
}
