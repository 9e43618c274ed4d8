/** Meanings of error codes and of protocol states for the page, in the words of `sluice why`. */
import { STATE_PHRASES } from '../../faults/advice.ts'
import { FAULT } from '../../faults/error-codes.ts'

interface CodeDescriptions {
  /** By code; transport codes by their base. */
  readonly codes: Readonly<Record<string, { readonly message: string; readonly description: string }>>
  /** When a failure has happened, by side and number of the documented state. */
  readonly phases: typeof STATE_PHRASES
}

export function describeCodes(): CodeDescriptions {
  const rows = Object.entries(FAULT).map(
    ([code, { message, description }]) => [code, { message, description }] as const,
  )
  return { codes: Object.fromEntries(rows), phases: STATE_PHRASES }
}
