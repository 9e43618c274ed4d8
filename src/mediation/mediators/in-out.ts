/** `<in>` and `<out>`: what is done with a request, and what with a message on its way back. */
import { type AnyMediator, mediator } from '../mediator.ts'
import type { Step } from '../program.ts'

interface Side {
  readonly steps: readonly Step[]
}

export const inMediator = side('in', false)
export const outMediator = side('out', true)

function side(name: string, ofResponses: boolean): AnyMediator {
  return mediator<Side>({
    name,
    attributes: [],
    elements: null,
    read: (element, reading) => ({ steps: reading.steps(element.children) }),
    compile({ steps }, compiling) {
      const run = compiling.steps(steps)
      return message => message.isResponse !== ofResponses || run(message)
    },
  })
}
