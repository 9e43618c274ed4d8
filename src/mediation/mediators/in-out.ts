/** `<in>` and `<out>`: mediators for requests only, and for responses only. */
import { mostOf } from '../flow-plan.ts'
import { type AnyMediator, mediator } from '../mediator.ts'
import type { MediatorPlan } from '../sequence-plan.ts'

interface SideSettings {
  readonly steps: readonly MediatorPlan[]
}

export const inMediator = side('in', false)
export const outMediator = side('out', true)

function side(name: string, isForResponses: boolean): AnyMediator {
  return mediator<SideSettings>({
    name,
    attributes: [],
    elements: null,
    parse: (element, parser) => ({ steps: parser.mediators(element.children) }),
    needs: ({ steps }, context) => mostOf('heads', context.steps(steps)),
    compile({ steps }, context) {
      const run = context.compileAll(steps)
      return message => message.isResponse !== isForResponses || run(message)
    },
  })
}
