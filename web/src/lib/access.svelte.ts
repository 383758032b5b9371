// The token of this start, which every call brings. It comes in the address that `firth studio` prints (or with the page,
// where a key was needed to get it), is taken out of the address bar, and is kept for this origin. No cookie: those are sent
// to every port of a machine. Not the tab's storage: a link that is opened in a new tab would have to ask for it again.

const NAME = "firth-token";

class Access {
  token = "";
  refused = $state(false); // whether the page has to ask for it

  constructor() {
    const given =
      document.querySelector<HTMLMetaElement>(`meta[name="${NAME}"]`)?.content ||
      new URLSearchParams(location.search).get("token");
    if (location.search) history.replaceState(null, "", location.pathname + location.hash);
    if (given) this.keep(given);
    else this.token = this.#kept();
    this.refused = !this.token;
  }

  keep(token: string): void {
    this.token = token;
    try {
      localStorage.setItem(NAME, token);
    } catch {
      // a browser that keeps nothing: until the page is left
    }
  }

  #kept(): string {
    try {
      return localStorage.getItem(NAME) ?? "";
    } catch {
      return "";
    }
  }

  /** The server did not take the token: whether another tab has been given a newer one. */
  renewed(): boolean {
    const now = this.#kept();
    const newer = !!now && now !== this.token;
    if (newer) this.token = now;
    return newer;
  }
}

export const access = new Access();
