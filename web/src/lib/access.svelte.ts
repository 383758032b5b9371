// The token of this server process, which every request sends. It is in the address that `firth studio` prints (or in the page,
// if that needs a key), is removed from the address bar and stored for this origin. Not a cookie: those are sent
// to every port of a machine. Not session storage: links opened in a new tab would have to ask for it again.

const NAME = "firth-token";

class Access {
  token = "";
  refused = $state(false); // whether the page must ask for the token

  constructor() {
    const given =
      document.querySelector<HTMLMetaElement>(`meta[name="${NAME}"]`)?.content ||
      new URLSearchParams(location.search).get("token");
    if (location.search) history.replaceState(null, "", location.pathname + location.hash);
    if (given) this.keep(given);
    else this.token = this.#stored();
    this.refused = !this.token;
  }

  keep(token: string): void {
    this.token = token;
    try {
      localStorage.setItem(NAME, token);
    } catch {
      // without storage, it lasts until the page is closed
    }
  }

  #stored(): string {
    try {
      return localStorage.getItem(NAME) ?? "";
    } catch {
      return "";
    }
  }

  /** After a refused token: whether another tab has stored a newer one. */
  renewed(): boolean {
    const now = this.#stored();
    const newer = !!now && now !== this.token;
    if (newer) this.token = now;
    return newer;
  }
}

export const access = new Access();
