/** `<propertyGroup>`: several `<property>` elements in order. */
import { mediator } from '../mediator.ts'
import type { MediatorPlan } from '../sequence-plan.ts'

interface GroupSettings {
  readonly steps: readonly MediatorPlan[]
}

export const propertyGroup = mediator<GroupSettings>({
  name: 'propertyGroup',
  attributes: [],
  elements: ['property'],
  parse: (element, parser) => ({ steps: parser.mediators(element.children) }),
  needs: ({ steps }, context) => context.steps(steps),
  compile: ({ steps }, context) => context.compileAll(steps),
})
