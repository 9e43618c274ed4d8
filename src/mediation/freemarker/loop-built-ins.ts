/** Built-ins of loop variables. */
import type { Loop } from './environment.ts'
import type { TemplateValue } from './values.ts'

const isOdd = ({ index }: Loop): boolean => index % 2 === 0

export const OF_LOOPS: Readonly<Record<string, (loop: Loop) => TemplateValue>> = {
  index: ({ index }) => index,
  counter: ({ index }) => index + 1,
  has_next: ({ index, items }) => index + 1 < items.size,
  is_first: ({ index }) => index === 0,
  is_last: ({ index, items }) => index + 1 === items.size,
  is_odd_item: isOdd,
  is_even_item: loop => !isOdd(loop),
  item_parity: loop => (isOdd(loop) ? 'odd' : 'even'),
  item_parity_cap: loop => (isOdd(loop) ? 'Odd' : 'Even'),
  item_cycle: () => undefined,
}
