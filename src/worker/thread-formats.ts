/** Builders and formatters of a worker thread: of all messages, and of blocking calls. */
import { type CustomFormats, loadCustomFormats, NO_CUSTOM_FORMATS } from '../mediation/formats/custom-format.ts'
import { type FormatSettings, isEmpty } from '../mediation/formats/format-settings.ts'
import { MessageFormats } from '../mediation/formats/message-formats.ts'

export interface ThreadFormats {
  readonly all: MessageFormats
  readonly ofBlockingCalls: MessageFormats
}

/** A promise where modules of the operator are loaded; it rejects with ModuleError. */
export function threadFormats(settings: FormatSettings, home: string): ThreadFormats | Promise<ThreadFormats> {
  const { ofBlockingCalls } = settings
  if (isEmpty(settings) && ofBlockingCalls === null) return formatsOf(settings, NO_CUSTOM_FORMATS, null)
  return Promise.all([
    loadCustomFormats(home, settings),
    ofBlockingCalls === null ? null : loadCustomFormats(home, ofBlockingCalls),
  ]).then(([all, ofCalls]) => formatsOf(settings, all, ofCalls))
}

function formatsOf(settings: FormatSettings, custom: CustomFormats, ofCalls: CustomFormats | null): ThreadFormats {
  const all = new MessageFormats(settings, custom)
  return { all, ofBlockingCalls: ofCalls === null ? all : new MessageFormats(settings, ofCalls) }
}
